package engine

import "github.com/sluice-go/sluice/runtime/memdynamo/internal/value"

// Values of ReturnValues.
const (
	allOld     = "ALL_OLD"
	allNew     = "ALL_NEW"
	updatedOld = "UPDATED_OLD"
	updatedNew = "UPDATED_NEW"
	none       = "NONE"
)

// returned returns the attributes that ReturnValues asks for; nil is none.
func (x *target) returned(returnValues *string, r result) value.Map {
	if returnValues == nil {
		return nil
	}
	switch *returnValues {
	case allOld:
		return r.old
	case allNew:
		return r.new
	case updatedOld:
		return x.touched(r.old)
	case updatedNew:
		return x.touched(r.new)
	default:
		return nil
	}
}

// touched returns the part of item that the update is about.
func (x *target) touched(item value.Map) value.Map {
	if x.update == nil || item == nil {
		return nil
	}
	return x.update.Updated(item)
}
