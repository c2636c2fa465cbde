package state

import "io"

// Snapshot writes the state so that Open reads it, and gives the position after the
// last record that it has seen. The error is that of the writer, or of a state that
// could not fold a record. Nobody changes the state while it is written.
func (s *State) Snapshot(w io.Writer) (next int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.next, s.encode(w, &besideImage{s.touched, s.window, s.erasures.pending})
}

// Open is the state of a snapshot, which goes on with the records behind it. The bytes
// must be ones that Snapshot wrote: who stores them says so with a signature.
func Open(r io.Reader) (*State, error) { return decode(r) }
