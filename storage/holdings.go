package storage

// Holding says that an order needs a blob of its tenant.
type Holding struct {
	Tenant   string
	Digest   string // "sha256:<hex>"
	Position int64  // of the order
}
