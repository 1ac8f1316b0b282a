package s3store

// Bound has s take objects of so many bytes at the most: as many as users may have take long to compress.
func (s *Store) Bound(most int) { s.most = most }
