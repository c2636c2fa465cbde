package document

import (
	"fmt"
	"strings"
)

// Fault is one thing that is wrong with a definition or a registry.
type Fault struct { //nolint:errname // a finding first, an error where one is wanted
	File  string `json:"file,omitempty"`  // empty: a text without a file
	Agent string `json:"agent,omitempty"` // the faulty agent, if there is no file
	// Workflow at fault, if there is no file.
	Workflow string `json:"workflow,omitempty"`
	Line     int    `json:"line,omitempty"`    // 0: unknown
	Pointer  string `json:"pointer,omitempty"` // JSON Pointer into the definition
	Reason   string `json:"reason"`            // what is wrong, or what to do
}

// ByFile orders faults.
func ByFile(a, b Fault) int { return strings.Compare(a.File, b.File) }

func (f Fault) Error() string {
	var b strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		b.WriteString(f.File + ": ")
	case f.Agent != "":
		b.WriteString("agent " + f.Agent + ": ")
	case f.Workflow != "":
		b.WriteString("workflow " + f.Workflow + ": ")
	case f.Line > 0:
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Pointer != "" {
		b.WriteString(f.Pointer + ": ")
	}
	return b.String() + f.Reason
}

// Faults are all that is wrong, one a line.
type Faults []Fault //nolint:errname // findings first

func (f Faults) Error() string {
	var lines []string
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}
