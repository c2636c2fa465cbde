package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// blockSize is how much of a bundle is read at first.
const blockSize = 1 << 20

// errCut: the last line has no end, or a line is longer than any may be.
var errCut = errors.New("cut short")

// endMark begins the last line.
var endMark = []byte(`{"end":`)

// lines reads a bundle line by line and hashes what it has read.
type lines struct {
	in       *bufio.Scanner
	sum      hash.Hash
	count    int64
	endSum   []byte // of everything before the line that may be the last
	endCount int64
}

func newLines(r io.Reader) *lines {
	l := &lines{in: bufio.NewScanner(r), sum: sha256.New()}
	l.in.Buffer(make([]byte, 0, blockSize), maxLine)
	l.in.Split(wholeLine)
	return l
}

// wholeLine is bufio.ScanLines, but retains the end of a line and refuses a line without one.
func wholeLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 && atEOF && len(data) > 0 {
		return 0, nil, errCut
	}
	if end == 0 {
		return 0, nil, nil
	}
	return end, data[:end], nil
}

// next is a line with its end: io.EOF after the last one.
func (l *lines) next() (string, error) {
	if !l.in.Scan() {
		err := cmp.Or(l.in.Err(), io.EOF)
		if errors.Is(err, bufio.ErrTooLong) {
			err = errCut
		}
		return "", err
	}
	line := l.in.Bytes()
	if bytes.HasPrefix(line, endMark) {
		l.endSum, l.endCount = l.sum.Sum(nil), l.count
	}
	l.sum.Write(line) // never fails
	l.count++
	return string(line), nil
}
