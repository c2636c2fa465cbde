package gateway

import (
	"crypto/sha256"
	"errors"
	"io"
)

// content is an artifact that can be read from anywhere. Each part is checked
// before any of its bytes is given.
type content struct {
	open func() (io.ReadCloser, int64, error)
	sums sums

	r    io.ReadCloser
	at   int64  // where r is
	part []byte // the part that was read last
	from int64  // where it begins
}

var errDamaged = errors.New("an artifact has changed since it was checked")

// ReadAt implements io.ReaderAt, for one reader at a time.
func (s *content) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at >= s.sums.size {
			return n, io.EOF
		}
		if at < s.from || at >= s.from+int64(len(s.part)) {
			if err := s.load(at / partSize); err != nil {
				return n, err
			}
		}
		k := copy(p[n:], s.part[at-s.from:])
		n, at = n+k, at+int64(k)
	}
	return n, nil
}

// load reads and checks a part.
func (s *content) load(i int64) error {
	if err := s.move(i * partSize); err != nil {
		return err
	}
	part := make([]byte, min(partSize, s.sums.size-i*partSize))
	n, err := io.ReadFull(s.r, part)
	s.at += int64(n)
	if err != nil {
		return err
	}
	if sha256.Sum256(part) != s.sums.of[i] {
		return errDamaged
	}
	s.part, s.from = part, i*partSize
	return nil
}

// move the reader. Where the store cannot seek, the bytes in between are read.
func (s *content) move(to int64) error {
	if s.r != nil && s.at == to {
		return nil
	}
	if s.r == nil || s.at > to {
		if err := s.Close(); err != nil {
			return err
		}
		var err error
		if s.r, _, err = s.open(); err != nil {
			return err
		}
		s.at = 0
	}
	if seeker, ok := s.r.(io.Seeker); ok {
		_, err := seeker.Seek(to, io.SeekStart)
		s.at = to
		return err
	}
	n, err := io.CopyN(io.Discard, s.r, to-s.at)
	s.at += n
	return err
}

// Close implements io.Closer.
func (s *content) Close() error {
	if s.r == nil {
		return nil
	}
	r := s.r
	s.r = nil
	return r.Close()
}
