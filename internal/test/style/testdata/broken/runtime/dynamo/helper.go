package dynamo

func helper() {}

// A line.

// A line.

// A line.

// A line.

// A line.

// A line.

// A line.

// A line.

// A line.

// A line.
