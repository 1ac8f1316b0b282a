package engine

import "github.com/sluice-go/sluice/runtime/memdynamo/internal/value"

// fits reports whether an item is small enough: its entries in local indexes share its limit.
func (t *tableState) fits(item value.Map) bool {
	size := value.ItemSize(item)
	if size*(1+len(t.Def.Indexes)) <= value.MaxItemSize {
		return true // no entry is larger than its item
	}
	sort := t.Def.Key.Sort.Name
	for i := range t.Def.Indexes {
		index := &t.Def.Indexes[i]
		entry, ok := t.Project(index, item)
		if !index.Local || !ok {
			continue
		}
		size += value.ItemSize(entry)
		if index.Projection.Type != "ALL" { // such an entry counts without the sort key of its table
			size -= value.ItemSize(value.Map{sort: item[sort]})
		}
	}
	return size <= value.MaxItemSize
}
