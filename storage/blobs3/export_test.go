package blobs3

// SetPage bounds how many keys one answer to a listing has.
func (b *Blobs) SetPage(n int) { b.page = n }
