package executors

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
)

// linesBudget bounds the lines of one answer in bytes of JSON, so that they stay inline with room
// for the enclosing document.
const linesBudget = storage.InlineLimit - 1_000

// Lines reads up to n lines after skipping start, each cut at 2 KiB on a character's boundary. It
// returns fewer where more would be 50,000 bytes of JSON; at least one, if there is one. more
// reports that lines follow.
func Lines(ctx context.Context, r io.Reader, start, n int) (lines []string, more bool, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	lines = []string{}
	size := 0
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		line, err := nextLine(in, i >= start)
		if errors.Is(err, io.EOF) {
			return lines, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if i < start {
			continue
		}
		if len(lines) == n {
			return lines, true, nil
		}
		if size += jsonSize(line); size > linesBudget && len(lines) > 0 {
			return lines, true, nil
		}
		lines = append(lines, line)
	}
}

// nextLine reads one line without its terminator and drops the part beyond the cut. A file's last
// line needs no terminator; an empty rest after a terminator is not a line.
func nextLine(in *bufio.Reader, wanted bool) (string, error) {
	var line []byte
	for first := true; ; first = false {
		part, err := in.ReadSlice('\n')
		if first && len(part) == 0 && err != nil {
			return "", err
		}
		end := err == nil
		if end {
			part = part[:len(part)-1]
		}
		if wanted && len(line) <= catalog.MaxLine {
			line = append(line, part[:min(len(part), catalog.MaxLine+1-len(line))]...)
		}
		switch {
		case end || errors.Is(err, io.EOF):
			return visible.Cut(string(line), catalog.MaxLine), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}

// jsonSize is the size of a text as JSON, and of the comma after it.
func jsonSize(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return len(s)
	}
	return len(raw) + 1
}
