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
	to   int64  // where the next Read is
	part []byte // the part that to was last in
	from int64  // where part begins
}

var errDamaged = errors.New("an artifact has changed since it was checked")

// Seek implements io.Seeker.
func (s *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.to
	case io.SeekEnd:
		offset += s.sums.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	s.to = offset
	return offset, nil
}

func (s *content) Read(p []byte) (int, error) {
	if s.to >= s.sums.size {
		return 0, io.EOF
	}
	if s.to < s.from || s.to >= s.from+int64(len(s.part)) {
		if err := s.load(s.to / partSize); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.part[s.to-s.from:])
	s.to += int64(n)
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
