package scale

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// The rows of `go run ./bench cell`, each of one intent that acts (an intent and its outcome:
// two commits, two records).
const (
	Decision      = "policy decision" // µs of CPU; part of Router
	Signature     = "signature"       // µs of CPU to make one; part of Router
	Router        = "router"          // µs of CPU: decided, two commits, dispatched, receipt
	Executor      = "executor"        // µs of CPU: message bus, ticket verified, answer
	Apply         = "state"           // µs of one core to follow the journal
	Recorder      = "recorder"        // µs from record to documents, one after the other
	Ledger        = "ledger"          // µs of CPU
	JournalBytes  = "journal bytes"
	LedgerBytes   = "ledger bytes"
	Documents     = "documents" // written, the same one several times too
	DocumentBytes = "document bytes"
	StateBytes    = "state bytes" // in the memory of each that follows the journal
	KeyBytes      = "key bytes"   // likewise
	Snapshot      = "snapshot"    // µs of one core to read it, of each intent that is kept
	SnapshotBytes = "snapshot bytes"
)

// GroupSizes are how many commits are measured in one message of the journal. None is
// larger than the last.
var GroupSizes = []int{1, 4, 16, 64, 256}

// Group is the row of a message of n commits, in milliseconds.
func Group(n int) string { return fmt.Sprintf("journal, group of %d", n) }

// Measured is what the rows say, by name.
type Measured map[string]float64

// builtin is the output of `go run ./bench cell --json`; docs/scale.md says when and where.
//
//go:embed measured.json
var builtin []byte

// Builtin are the figures to go by where nobody gives others.
func Builtin() (Measured, error) { return ReadMeasured(bytes.NewReader(builtin)) }

// ReadMeasured reads what `go run ./bench cell --json` has written.
func ReadMeasured(r io.Reader) (Measured, error) {
	var report struct {
		Rows []struct {
			Name     string  `json:"name"`
			Measured float64 `json:"ours"`
		} `json:"rows"`
	}
	if err := json.NewDecoder(r).Decode(&report); err != nil {
		return nil, fmt.Errorf("not the output of go run ./bench cell --json: %w", err)
	}
	m := Measured{}
	for _, row := range report.Rows {
		m[row.Name] = row.Measured
	}
	names := []string{Decision, Signature, Router, Executor, Apply, Recorder, Ledger, JournalBytes, LedgerBytes, Documents, DocumentBytes, StateBytes, KeyBytes, Snapshot, SnapshotBytes}
	for _, n := range GroupSizes {
		names = append(names, Group(n))
	}
	for _, name := range names {
		if !(m[name] > 0 && m[name] < 1e9) {
			return nil, fmt.Errorf("no row %q with a figure that can be: take the output of go run ./bench cell --json", name)
		}
	}
	return m, nil
}

// takes is how long something that is in microseconds takes for n intents.
func (m Measured) takes(n float64, names ...string) time.Duration {
	var sum float64
	for _, name := range names {
		sum += m[name]
	}
	return time.Duration(n * sum * float64(time.Microsecond))
}

// group is how long the journal takes for n commits in one message: as long as for the
// next larger group that was measured.
func (m Measured) group(n int) time.Duration {
	for _, size := range GroupSizes {
		if n <= size {
			return time.Duration(m[Group(size)] * float64(time.Millisecond))
		}
	}
	return m.group(GroupSizes[len(GroupSizes)-1])
}
