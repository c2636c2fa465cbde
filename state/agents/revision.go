package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/rootdir"
	"aob.dev/writ/state/document"
	"aob.dev/writ/state/workflows"
)

// Revision is one state of the registry: agents, workflows, blocks of prompts, and
// documents of skills. It is immutable.
//
//	agents/<file>.yaml      an agent; <file>.yaml where there is no folder agents
//	workflows/<file>.yaml   a workflow
//	prompts/<name>.md       a block of a prompt
//	skills/<id>/skill.md    a document of a skill
type Revision struct {
	Agents  []*Definition   // by name
	Notices Faults          // what was left out, and warnings
	Skills  []SkillDocument // by id

	Workflows []*workflows.Definition // by id

	files  map[string][]byte
	digest string
}

// maxRevision is the maximum total length of the files of a revision, in bytes.
const maxRevision = 16 << 20

const tooLarge = "the files have more than 16 MB together"

// ReadDir is Read of a local directory, without following links out of it: only its regular
// files are read. Files get only the listed environment variables.
func ReadDir(dir string, env func(name string) string, variables []string, hosts ...string) (*Revision, error) {
	d, err := rootdir.Open(dir)
	if err != nil {
		return nil, err
	}
	r, err := Read(d, func(name string) string {
		if value := env(name); value == "" || slices.Contains(variables, name) {
			return value
		}
		return unlisted
	}, hosts...)
	return r, errors.Join(err, d.Close())
}

// unlisted replaces the value of a variable that files may not use.
const unlisted = "\x00"

// Read reads the revision in a directory. Without a folder agents, the *.yaml of the directory
// itself are the agents. ${VAR} and ${VAR:-default} in an agent's file are filled in from env,
// and a line {{prompts/<name>.md}} is replaced by that block. Files that are too large, and
// agents with the name of a built-in one, are left out with a notice. Hosts are where the
// operator allows remote agents in addition to the public network. The error is Faults, except if a
// file cannot be read.
func Read(dir fs.FS, env func(name string) string, hosts ...string) (*Revision, error) {
	found, notices, err := collect(dir)
	if err != nil {
		return nil, err
	}
	var faults Faults
	lines := make(map[string]map[string]int) // of files as written by their authors
	unusable := func(name string, f *Fault) {
		faults = append(faults, Fault{File: name, Line: f.Line, Reason: f.Reason})
		delete(found, name)
	}
	for name, text := range found {
		if !agentFile.MatchString(name) {
			continue
		}
		filled, err := fill(text, env)
		if err != nil {
			unusable(name, err)
			continue
		}
		d, wrong := define(name, filled)
		if found[name] = filled; len(wrong) == 0 {
			lines[name] = d.lines
			whole, err := withBlocks(filled, found)
			if err != nil {
				unusable(name, err)
				continue
			}
			found[name] = whole
		}
		if d.Agent != nil && d.Endpoint != "" {
			if err := egress.Check(d.Endpoint, hosts...); err != nil {
				faults = append(faults, Fault{File: name, Line: d.line("/endpoint"), Pointer: "/endpoint", Reason: err.Error()})
			}
		}
		if d.Agent != nil && replaceable(d.Name) {
			notices = append(notices, Fault{File: name, Reason: "replaces the built-in agent " + d.Name + " of the tenant to which it is pushed, once a second person has approved that"})
		} else if d.Agent != nil && (d.Name == Client || has(builtins(), d.Name)) {
			notices = append(notices, Fault{File: name, Reason: "left out, " + d.Name + " is a built-in agent: choose another name"})
			delete(found, name)
		}
	}
	r, err := open(found)
	if more := Faults(nil); errors.As(err, &more) {
		faults = append(faults, more...)
	} else if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		slices.SortStableFunc(faults, document.ByFile)
		return nil, faults
	}
	for _, d := range r.Agents {
		d.lines = lines[d.File]
	}
	r.Notices = append(notices, r.Notices...)
	slices.SortStableFunc(r.Notices, document.ByFile)
	return r, nil
}

// collect reads the files of a revision, by path.
func collect(dir fs.FS) (found map[string][]byte, notices Faults, err error) {
	found = make(map[string][]byte)
	folder := "agents/"
	if info, err := fs.Stat(dir, "agents"); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		folder = ""
	} else if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"workflows", "prompts", "skills"} { // Glob skips these silently
		if _, err := fs.Stat(dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, Faults{{File: name, Reason: strings.TrimPrefix(err.Error(), name+" ")}}
		}
	}
	for _, pattern := range []string{folder + "*.yaml", folder + "*.yml", "workflows/*.yaml", "workflows/*.yml", "prompts/*.md", "skills/*/skill.md"} {
		names, err := fs.Glob(dir, pattern)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			info, err := fs.Stat(dir, name)
			switch {
			case errors.Is(err, rootdir.ErrNotPlain):
				return nil, nil, Faults{{File: name, Reason: rootdir.ErrNotPlain.Error()}}
			case err != nil:
				return nil, nil, err
			case !info.Mode().IsRegular() || strings.HasPrefix(path.Base(name), "."):
				continue
			case info.Size() > document.MaxFile:
				notices = append(notices, Fault{File: name, Reason: "left out, larger than 1 MB"})
				continue
			}
			if found[name], err = fs.ReadFile(dir, name); err != nil {
				return nil, nil, err
			}
		}
	}
	return found, notices, nil
}

// variable in an agent's file. Only names in capitals count: other texts with ${ belong to the
// agent.
var variable = regexp.MustCompile(`\$\{([A-Z_][A-Z0-9_]*)(:-[^}\n]*)?\}`)

// fill inserts the values of variables into a file. An empty value counts as none.
func fill(text []byte, env func(string) string) ([]byte, *Fault) {
	var out []byte
	end := 0
	for _, m := range variable.FindAllSubmatchIndex(text, -1) {
		name := string(text[m[2]:m[3]])
		value := env(name)
		if value == "" && m[4] >= 0 {
			value = string(text[m[4]+len(":-") : m[5]])
		}
		line := 1 + strings.Count(string(text[:m[0]]), "\n")
		switch {
		case value == unlisted:
			return nil, &Fault{Line: line, Reason: "the variable " + name + " is not for agents, whose files others read: list it in agent_variables, or write its value into the file"}
		case value == "" && m[4] < 0:
			return nil, &Fault{Line: line, Reason: "the variable " + name + " is not set: set it, or write ${" + name + ":-default}"}
		case strings.ContainsAny(value, "\"'\\") || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }):
			return nil, &Fault{Line: line, Reason: "the variable " + name + " has a quote, a backslash or a line break: write its value into the file"}
		}
		out = append(append(out, text[end:m[0]]...), value...)
		end = m[1]
	}
	return append(out, text[end:]...), nil
}

var (
	agentFile = regexp.MustCompile(`^(agents/)?[^/]+\.ya?ml$`)
	flowFile  = regexp.MustCompile(`^workflows/[^/]+\.ya?ml$`)
	blockFile = regexp.MustCompile(`^prompts/[^/]+\.md$`)
	skillFile = regexp.MustCompile(`^skills/[^/]+/skill\.md$`)
)

// open reads a revision from its files, by path, as [Revision.Files] returns them. The error is
// Faults.
func open(files map[string][]byte) (*Revision, error) {
	r := &Revision{files: maps.Clone(files)}
	var faults Faults
	fault := func(file, reason string) { faults = append(faults, Fault{File: file, Reason: reason}) }
	size := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		size += len(text)
		switch {
		case len(text) > document.MaxFile:
			fault(name, "is larger than 1 MB")
		case !utf8.ValidString(name) || !utf8.Valid(text):
			fault(name, "is not UTF-8")
		case agentFile.MatchString(name):
			d, wrong := define(name, text)
			if len(wrong) > 0 {
				faults = append(faults, wrong...)
				continue
			}
			r.Agents = append(r.Agents, d)
			if d.Routing != nil && d.Threshold == 1 {
				const at = "/confidence_threshold"
				r.Notices = append(r.Notices, Fault{File: name, Line: d.line(at), Pointer: at, Reason: "at 1 no request ever reaches the agent: lower it"})
			}
		case flowFile.MatchString(name):
			d, wrong := workflows.Parse(name, text)
			if faults = append(faults, wrong...); len(wrong) == 0 {
				r.Workflows = append(r.Workflows, d)
			}
		case skillFile.MatchString(name):
			d, wrong := skillDocument(name, text)
			r.Skills, faults = append(r.Skills, d), append(faults, wrong...)
		case !blockFile.MatchString(name):
			fault(name, "is no file of a registry: it has agents/*.yaml, workflows/*.yaml, prompts/*.md and skills/<id>/skill.md")
		}
	}
	if size > maxRevision {
		fault("", tooLarge)
	}
	slices.SortStableFunc(r.Agents, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(r.Workflows, func(a, b *workflows.Definition) int { return strings.Compare(a.WorkflowID, b.WorkflowID) })
	faults = append(faults, r.duplicates()...)
	size = 0
	for _, d := range r.Agents {
		for _, e := range d.Enrichers {
			size += len(e.Schema)
		}
	}
	if size > maxTypes {
		fault("", fmt.Sprintf("the schemas of enrichers have more than %d KiB together", maxTypes>>10))
	}
	if scopes, err := json.Marshal(r.Scopes()); err != nil || len(scopes) > maxScopes {
		fault("", fmt.Sprintf("what the agents may do, and the workflows, take more than %d KiB: use fewer agents, whole servers instead of their tools, or shorter scripts", maxScopes>>10))
	}
	manifest, err := intents.FileList(files)
	if err != nil {
		fault("", err.Error())
	}
	r.digest = intents.Digest(manifest)
	if len(faults) > 0 {
		return nil, faults
	}
	return r, nil
}

// duplicates finds names of more than one agent or workflow, and those of built-in agents.
func (r *Revision) duplicates() Faults {
	var faults Faults
	for i, d := range r.Agents {
		at := "/name"
		if _, ok := d.lines[at]; !ok && d.lines != nil {
			at = "/agent_id"
		}
		switch {
		case has(builtins(), d.Name) && !replaceable(d.Name):
			faults = append(faults, Fault{File: d.File, Line: d.line(at), Pointer: at, Reason: "is the name of a built-in agent: choose another"})
		case i > 0 && r.Agents[i-1].Name == d.Name:
			faults = append(faults, Fault{File: d.File, Line: d.line(at), Pointer: at, Reason: "is the name of the agent in " + r.Agents[i-1].File + ", too: rename one of them"})
		}
	}
	const at = "/workflow_id"
	for i, d := range r.Workflows {
		if i > 0 && r.Workflows[i-1].WorkflowID == d.WorkflowID {
			faults = append(faults, Fault{File: d.File, Line: d.Line(at), Pointer: at, Reason: "is the id of the workflow in " + r.Workflows[i-1].File + ", too: rename one of them"})
		}
	}
	return faults
}

// ForAll returns the revision without the agents that replace built-in ones: each tenant does that
// by itself.
func (r *Revision) ForAll() (*Revision, error) {
	files, notices := maps.Clone(r.files), slices.Clone(r.Notices)
	for _, d := range r.Agents {
		if has(builtins(), d.Name) {
			notices = append(slices.DeleteFunc(notices, func(f Fault) bool { return f.File == d.File }), Fault{File: d.File, Reason: "left out, " + d.Name + " is a built-in agent: replace it for one tenant, with writ registry push --tenant"})
			delete(files, d.File)
		}
	}
	if len(files) == len(r.files) {
		return r, nil
	}
	out, err := open(files)
	if err == nil {
		out.Notices = notices
	}
	return out, err
}

// Agent finds an agent of the revision.
func (r *Revision) Agent(name string) (*Definition, bool) {
	i, ok := slices.BinarySearchFunc(r.Agents, name, func(d *Definition, name string) int { return strings.Compare(d.Name, name) })
	if !ok {
		return nil, false
	}
	return r.Agents[i], true
}

// Workflow finds a workflow of the revision.
func (r *Revision) Workflow(id string) (*workflows.Definition, bool) {
	i := slices.IndexFunc(r.Workflows, func(d *workflows.Definition) bool { return d.WorkflowID == id })
	if i < 0 {
		return nil, false
	}
	return r.Workflows[i], true
}

// Files are the revision's content, by path; variables are filled in. Do not modify.
func (r *Revision) Files() map[string][]byte { return r.files }

// Digest identifies the revision. It is that of its manifest: the canonical JSON of path to
// digest of each file.
func (r *Revision) Digest() string { return r.digest }

// Scopes of the revision's own agents and workflows.
func (r *Revision) Scopes() Scopes {
	out := scopesOf(r.Agents)
	for _, d := range r.Workflows {
		out.Workflows = append(out.Workflows, d.Graph)
	}
	return out
}

// Check judges the resulting set of agents and workflows: this revision over the built-in ones
// and the layers below. The error is Faults.
func (r *Revision) Check(below ...Scopes) error {
	_, err := Effective(BuiltinScopes(), append(slices.Clip(below), r.Scopes())...)
	var faults Faults
	if !errors.As(err, &faults) {
		return err
	}
	for i, f := range faults {
		if d, ok := r.Agent(f.Agent); ok {
			faults[i].File, faults[i].Line = d.File, d.line(f.Pointer)
		}
		if d, ok := r.Workflow(f.Workflow); ok {
			faults[i].File, faults[i].Line = d.File, d.Line(f.Pointer)
		}
	}
	return faults
}
