package regionsim

// Read units that reading a table takes in each cycle, as DynamoDB bills them. TestDocsRegionsCosts
// holds both against the engine.
const (
	// BucketUnits is of one bucket: half a unit for the item, and its part of the page of GSI2 that names it.
	// The item is read eventually consistently and is below 4 KB. Entries of keys alone are about 170 bytes
	// long, and a unit reads 8 KB of them.
	BucketUnits = 0.52
	// KindUnits is of what is overridden for a resource's kind, which is read consistently.
	KindUnits = 1.0
)
