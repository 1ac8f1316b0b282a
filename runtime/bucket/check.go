package bucket

// Check says what is wrong with l as a limit, in words that follow its name, or nothing: design section 3 bounds what a
// limit may be, so that int64 holds all that comes of it.
func (l Limit) Check() string { panic("to come") }
