// Package eval judges what agents did with messages. A set of cases is a YAML file:
//
//	min: 0.9                        # the set's own threshold; absent: the command's
//	cases:
//	  - message: What did C-007 order?
//	    tools: [list_orders]        # these and no others, in the order of their first calls
//	    answer: {contains: [O-1007, hammer]}
//	  - message: And when will it arrive?
//	    history:                    # turns of the same session, asked before
//	      - {message: "What did C-007 order?", agents: [sales]}
//	    agents: [shipping]          # who worked on the turn, besides writ's own
//	    tools: {track_shipment: 1+} # how often, in any order: n, or n+ for at least n
//	  - message: Delete all customers.
//	    refused: true
package eval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Set is one file of cases.
type Set struct {
	File  string   `yaml:"-"`
	Min   *float64 `yaml:"min"` // of 0 to 1: the share of its cases that must pass
	Cases []Case   `yaml:"cases"`
}

// Case is a message and what must become of it. What it leaves out is not judged.
type Case struct {
	Line    int      `yaml:"-"`
	Message string   `yaml:"message"`
	History []Turn   `yaml:"history"`
	Agents  []string `yaml:"agents"`
	Tools   *Tools   `yaml:"tools"`
	Answer  Answer   `yaml:"answer"`
	Refused bool     `yaml:"refused"` // the plan fails, or the answer comes without a call
}

// Turn is an earlier turn of a case's session.
type Turn struct {
	Message string   `yaml:"message"`
	Agents  []string `yaml:"agents"` // who is expected to work on it, for the rates of pairs
}

// Answer is what the user must be told: each text, whatever its letters' case, and
// something that the expression matches.
type Answer struct {
	Contains []string `yaml:"contains"`
	Matches  Pattern  `yaml:"matches"`
}

// Pattern is a regular expression in RE2's syntax.
type Pattern struct{ *regexp.Regexp }

// UnmarshalYAML compiles it.
func (p *Pattern) UnmarshalYAML(n *yaml.Node) (err error) {
	if p.Regexp, err = regexp.Compile(n.Value); err != nil {
		err = fmt.Errorf("matches: %w", err)
	}
	return err
}

// Tools are the calls of a turn: Order, or Counts.
type Tools struct {
	Order  []string
	Counts map[string]Count
}

// Count is how often a tool must be called.
type Count struct {
	N       int
	AtLeast bool
}

// UnmarshalYAML reads n, or n+.
func (c *Count) UnmarshalYAML(n *yaml.Node) (err error) {
	text, more := strings.CutSuffix(n.Value, "+")
	if c.N, err = strconv.Atoi(text); err != nil || c.N < 0 {
		return fmt.Errorf("tools: %q is no count: write n, or n+ for at least n", n.Value)
	}
	c.AtLeast = more
	return nil
}

// UnmarshalYAML reads a list of names, or a mapping of names to counts.
func (t *Tools) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		return n.Decode(&t.Counts)
	}
	return n.Decode(&t.Order)
}

// UnmarshalYAML keeps the line, and refuses what is no member, which a decoder that was
// told to forgets inside of it.
func (c *Case) UnmarshalYAML(n *yaml.Node) error {
	type plain Case
	raw, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode((*plain)(c)); err != nil {
		return fmt.Errorf("the case in line %d: %w", n.Line, worded(err))
	}
	if c.Line = n.Line; strings.TrimSpace(c.Message) == "" {
		return fmt.Errorf("the case in line %d: message is missing", n.Line)
	}
	return nil
}

// Read reads the sets of a directory: its YAML files.
func Read(dir fs.FS) (sets []Set, err error) {
	files, err := fs.Glob(dir, "*.y*ml")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		s, err := read(dir, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sets = append(sets, s)
	}
	if len(sets) == 0 {
		return nil, errors.New("has no cases: write them into a file *.yaml")
	}
	return sets, nil
}

func read(dir fs.FS, name string) (Set, error) {
	s := Set{File: path.Clean(name)}
	f, err := dir.Open(name)
	if err != nil {
		return s, err
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return s, worded(err)
	}
	switch {
	case len(s.Cases) == 0:
		return s, errors.New("cases is missing or empty")
	case s.Min != nil && (*s.Min < 0 || *s.Min > 1):
		return s, errors.New("min is from 0 to 1")
	}
	return s, nil
}

// inGo are the parts of YAML's errors about Go: the types, and lines of a part of the file.
var inGo = regexp.MustCompile(`^line \d+: | in type \S+`)

// worded is an error of YAML in one line, for who writes cases.
func worded(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	var all []string
	for _, e := range wrong.Errors {
		all = append(all, inGo.ReplaceAllString(e, ""))
	}
	return errors.New(strings.Join(all, "; "))
}
