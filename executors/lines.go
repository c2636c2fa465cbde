package executors

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// linesBudget bounds the lines of one answer in bytes of JSON, so that they
// stay inline with room for what stands around them.
const linesBudget = storage.InlineLimit - 1_000

// Lines reads up to n lines after skipping start, each cut at 2 KiB on a
// character's boundary. It gives fewer where more would be 50,000 bytes
// of JSON; at least one, if there is one. more says that lines follow.
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

// nextLine reads one line without its end and drops what is beyond the cut.
// A file's last line needs no end; nothing after an end is no line.
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
			return cutLine(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}

func cutLine(line []byte) string {
	if len(line) <= catalog.MaxLine {
		return string(line)
	}
	return Cut(string(line), catalog.MaxLine)
}

// Cut gives at most limit bytes of s, ending with a whole character.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// jsonSize is the size of a text as JSON, and of the comma after it.
func jsonSize(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return len(s)
	}
	return len(raw) + 1
}
