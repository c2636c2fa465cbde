package state

// Snapshot gives the state as bytes that Open reads, and the position after the last
// record that it has seen. The error is that of a state that could not fold a record.
func (s *State) Snapshot() (raw []byte, next int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	raw, err = s.encode(s.touched)
	return raw, s.next, err
}

// Open is the state of a snapshot, which goes on with the records behind it. The bytes
// must be ones that Snapshot gave: who stores them says so with a signature.
func Open(raw []byte) (*State, error) { return decode(raw) }
