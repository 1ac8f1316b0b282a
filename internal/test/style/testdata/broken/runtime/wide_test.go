package runtime

// Sizes do not hold for tests, but columns do: this line has 111. and so on, and so on, and so on, xxxxxxxxxxx
func long() {
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
	_ = 0
}

// A line may have 110 columns. and so on, and so on, and so on, and so on, and so on, and so on, xxxxxxxxxxxx
func fits() {}
