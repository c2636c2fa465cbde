package logging_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/logging"
)

// TestNobodyReads: whoever writes to a pipe that nobody reads never waits, what does not fit is
// counted, and the next reader is told. After the reader is gone all is dropped.
func TestNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a := logging.NewAsyncWriter(w, func(dropped int64) { fmt.Fprintf(w, "%d lines were dropped\n", dropped) })
	line := []byte(strings.Repeat("x", 1023) + "\n")
	const lines = 8 << 10 // twice what waits
	for range lines {
		if n, err := a.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	dropped := a.Dropped()
	if dropped < lines/3 || dropped > lines/2 {
		t.Errorf("%d of %d lines were dropped", dropped, lines)
	}
	told := int64(0)
	for read := bufio.NewScanner(r); told < dropped && read.Scan(); {
		var n int64
		if _, err := fmt.Sscanf(read.Text(), "%d lines were dropped", &n); err == nil {
			told += n
		}
	}
	if told != dropped {
		t.Errorf("the reader is told of %d of %d", told, dropped)
	}
	_ = r.Close()
	for range lines {
		_, _ = a.Write(line)
	}
	a.Close(time.Minute)
	if _, err := a.Write(line); err != nil || a.Dropped() < dropped+lines/3 {
		t.Errorf("%d dropped, %v", a.Dropped(), err)
	}
}
