package agents

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// SkillDocument describes the purpose, the tools and the failures of a skill:
// skills/<id>/skill.md. Models do not receive it; people and MCP clients read it.
type SkillDocument struct {
	ID         string      `json:"id"`
	Title      string      `json:"title"`
	Capability string      `json:"capability"`
	Tools      []SkillTool `json:"tools"`
	Text       string      `json:"-"`
}

// SkillTool is a tool of a skill: <server>.<tool>, a tool of any server, or one of this system.
type SkillTool struct {
	Name string `json:"name"`
	RPM  int    `json:"rpm,omitempty"` // calls a minute that a tenant may make; 0: any number
}

// The sections that a document has.
const (
	sectionCapability = "Capability"
	sectionTools      = "MCP Tools"
)

var sections = []string{sectionCapability, sectionTools, "Usage Examples", "Error Handling", "Security Considerations"}

var (
	skillID  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	toolName = regexp.MustCompile(`^[A-Za-z0-9_./:-]{1,128}$`)
	toolRate = regexp.MustCompile(`^([1-9][0-9]{0,5})( RPM)?$`)
	columns  = []string{"Tool", "Input Schema", "Output", "Rate Limit"}
)

// skillDocument reads a document, and finds its faults.
func skillDocument(file string, text []byte) (d SkillDocument, faults Faults) {
	d = SkillDocument{ID: path.Base(path.Dir(file)), Tools: []SkillTool{}, Text: string(text)}
	fault := func(line int, format string, args ...any) {
		faults = append(faults, Fault{File: file, Line: line, Reason: fmt.Sprintf(format, args...)})
	}
	if !skillID.MatchString(d.ID) {
		fault(0, "the folder is the id of the skill: lower case, digits, - and _, at most 64")
	}
	begins, said := map[string]int{}, map[string]bool{} // sections
	at, fenced, rows := "", false, 0
	for i, line := range strings.Split(d.Text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		title, isTitle := strings.CutPrefix(line, "# ")
		section, isSection := strings.CutPrefix(line, "## ")
		switch {
		case line == "":
		case isTitle && !fenced && d.Title == "":
			d.Title = title
		case isSection && !fenced:
			at = strings.TrimSpace(section)
			if begins[at] > 0 {
				fault(i+1, "the section %q stands there twice: make them one", at)
			}
			begins[at] = i + 1
		case at == sectionTools && !fenced && line[0] == '|':
			rows++
			if reason := d.row(rows, cells(line)); reason != "" {
				fault(i+1, "%s", reason)
			}
		default:
			said[at] = true
			if at == sectionCapability {
				d.Capability = strings.TrimSpace(d.Capability + " " + line)
			}
		}
	}
	if d.Title == "" {
		fault(1, "has no title: begin with # and the name of the skill")
	}
	said[sectionTools] = len(d.Tools) > 0 || rows > 2
	for _, name := range sections {
		switch {
		case begins[name] == 0:
			fault(0, "has no section %q", "## "+name)
		case name == sectionTools && !said[name]:
			fault(begins[name], "names no tool: it has a table | %s |", strings.Join(columns, " | "))
		case !said[name]:
			fault(begins[name], "the section %q says nothing", name)
		}
	}
	return d, faults
}

// row reads the next row of the table of tools, and returns its fault.
func (d *SkillDocument) row(n int, cells []string) string {
	switch {
	case len(cells) != len(columns):
		return fmt.Sprintf("has %d columns: there are %s", len(cells), strings.Join(columns, ", "))
	case n == 1:
		for i, name := range columns {
			if !strings.HasPrefix(cells[i], name) {
				return fmt.Sprintf("the column %q is in the place of %q", cells[i], name)
			}
		}
		return ""
	case n == 2: // the line below the header
		return ""
	}
	t := SkillTool{Name: strings.Trim(cells[0], "`")}
	if !toolName.MatchString(t.Name) {
		return fmt.Sprintf("%q is no name of a tool", t.Name)
	}
	rate := toolRate.FindStringSubmatch(cells[3])
	switch {
	case rate != nil:
		t.RPM, _ = strconv.Atoi(rate[1])
	case cells[3] != "" && cells[3] != "-" && cells[3] != "–":
		return fmt.Sprintf("the rate %q is no number of calls a minute, such as 60, nor –", cells[3])
	}
	d.Tools = append(d.Tools, t)
	return ""
}

// cells of a row of a table. \| is a character of a cell.
func cells(line string) []string {
	const bar = "\x00"
	line = strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|")
	out := strings.Split(line, "|")
	for i := range out {
		out[i] = strings.TrimSpace(strings.ReplaceAll(out[i], bar, "|"))
	}
	return out
}

//go:embed skills
var skillFiles embed.FS

var builtinSkills = sync.OnceValue(func() []SkillDocument {
	r, err := Read(skillFiles, func(string) string { return "" })
	if err != nil {
		panic(err) // files of this package
	}
	return r.Skills
})

// SkillDocuments is the resulting set, by id: the built-in ones, over them those of the layers
// (those of the system, then the tenant's own); the nearest one of an id counts.
func SkillDocuments(layers ...*Revision) []SkillDocument {
	byID := map[string]SkillDocument{}
	for _, d := range builtinSkills() {
		byID[d.ID] = d
	}
	for _, r := range layers {
		for _, d := range r.Skills {
			byID[d.ID] = d
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b SkillDocument) int { return strings.Compare(a.ID, b.ID) })
}

// Rate is the number of calls of a skill, by its full id, that a tenant may make in a minute:
// the lowest of all documents of its layers; 0: unlimited. So a nearer document never loosens
// the limit of another one.
func Rate(skill string, layers ...*Revision) (rpm int) {
	for _, r := range layers {
		for _, d := range r.Skills {
			for _, t := range d.Tools {
				if (t.Name == skill || strings.HasSuffix(skill, "."+t.Name)) && t.RPM > 0 && (rpm == 0 || t.RPM < rpm) {
					rpm = t.RPM
				}
			}
		}
	}
	return rpm
}
