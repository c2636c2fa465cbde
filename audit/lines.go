package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// blockSize is how much of a bundle is read at once.
const blockSize = 1 << 20

// errCut: the last line has no end, or a line is longer than any may be.
var errCut = errors.New("cut short")

// endMark begins the last line.
var endMark = []byte(`{"end":`)

// lines reads a bundle line by line and hashes what it has read.
type lines struct {
	r        io.Reader
	rest     []byte // read, and not given out
	err      error  // why no more can be read
	sum      hash.Hash
	count    int64
	endSum   []byte // of everything before the line that may be the last
	endCount int64
}

func newLines(r io.Reader) *lines { return &lines{r: r, sum: sha256.New()} }

// next is a line with its end: io.EOF after the last one. Nothing is written to
// it again.
func (l *lines) next() ([]byte, error) {
	for searched := 0; ; {
		n := bytes.IndexByte(l.rest[searched:], '\n')
		switch {
		case n >= 0:
			return l.take(searched + n + 1), nil
		case len(l.rest) >= maxLine:
			return l.rest, errCut
		case errors.Is(l.err, io.EOF) && len(l.rest) == 0:
			return nil, io.EOF
		case errors.Is(l.err, io.EOF):
			return l.rest, errCut
		case l.err != nil:
			return nil, l.err
		}
		searched = len(l.rest)
		l.fill()
	}
}

func (l *lines) take(n int) []byte {
	line := l.rest[:n:n]
	l.rest = l.rest[n:]
	if bytes.HasPrefix(line, endMark) {
		l.endSum, l.endCount = l.sum.Sum(nil), l.count
	}
	l.sum.Write(line) // never fails
	l.count++
	return line
}

// fill reads another block behind what is left. It is a block of its own: lines
// that were given out stay as they are.
func (l *lines) fill() {
	block := make([]byte, len(l.rest)+max(blockSize, len(l.rest)))
	n := copy(block, l.rest)
	var read int
	read, l.err = io.ReadAtLeast(l.r, block[n:], 1)
	if l.err == nil {
		var more int
		more, l.err = io.ReadFull(l.r, block[n+read:])
		read += more
		if errors.Is(l.err, io.ErrUnexpectedEOF) {
			l.err = io.EOF
		}
	}
	l.rest = block[:n+read]
}
