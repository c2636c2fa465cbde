package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"

	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/schemas"
)

// Version is one version of a tool as its server declared it, for people who approve
// it.
type Version struct {
	Name         string          `json:"name"`              // the skill's id
	Server       string          `json:"server"`            // its title
	Tenants      []string        `json:"tenants,omitempty"` // tenants that see it; none: all
	Digest       string          `json:"digest"`
	Effect       catalog.Effect  `json:"effect"`                // as it is approved at first sight
	Claim        catalog.Effect  `json:"claim"`                 // as its hints claim
	Destructive  string          `json:"destructive,omitempty"` // default of the approval
	Trusted      bool            `json:"trusted,omitempty"`     // same
	OpenWorld    string          `json:"open_world,omitempty"`  // same
	Declared     bool            `json:"declared"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Unchecked    []string        `json:"unchecked,omitempty"` // what of it writ does not check, or shows in another form
	Fault        string          `json:"fault,omitempty"`     // why the tool cannot be called, and has no digest
}

// For reports whether a tenant sees the skill.
func (v Version) For(tenant string) bool {
	return v.Tenants == nil || slices.Contains(v.Tenants, tenant)
}

// maxPinned bounds a schema that stands in an approval, in bytes.
const maxPinned = 16 << 10

// PinnedSchema is the schema of a skill's input as its approval has it, as far as it can be checked:
// none where it is too large or has a number that no intent can have, so that graphs are checked
// when they run.
func PinnedSchema(schema json.RawMessage) json.RawMessage {
	if schema = schemas.Tolerate(schema).Source(); len(schema) > maxPinned {
		return nil
	}
	if _, err := intents.Canonical(schema); err != nil {
		return nil
	}
	return schema
}

// Pin is the approval of this version, or else of another one of the skill.
func (v Version) Pin(pins []intents.Pin) (of intents.Pin, pinned bool) {
	for _, pin := range pins {
		switch {
		case pin.Digest == v.Digest:
			return pin, true
		case pin.Skill == v.Name:
			of, pinned = pin, true
		}
	}
	return of, pinned
}

// maxSkillsFile bounds the file, in bytes: a message of the bus carries it.
const maxSkillsFile = 7 << 20

func skillsFile(dir string) string { return filepath.Join(dir, "skills.json") }

// ReadVersions reads the tools of the last listing of the skill servers and the approved versions
// seen before. The file is not part of the record: the process that uses the data directory
// rewrites it.
func ReadVersions(dir string) (list []Version, err error) {
	if _, err = durable.ReadJSON(skillsFile(dir), &list); err != nil {
		err = fmt.Errorf("skills of %s: %w", dir, err)
	}
	return list, err
}

// WriteVersions replaces the file.
func WriteVersions(dir string, list []Version) error {
	raw, err := json.Marshal(list)
	if err == nil && len(raw) > maxSkillsFile {
		err = fmt.Errorf("they have more than %d bytes", maxSkillsFile)
	}
	if err != nil {
		return err
	}
	return durable.Write(skillsFile(dir), raw)
}

// writeVersions stores the declared versions of skills and retains the approved ones for
// comparison. A crash leaves the old file. A failed write is logged and nothing else fails.
func (w *Watcher) writeVersions(ctx context.Context, found []skills.Skill) {
	dir, log := w.Dir, w.Log
	list, seen := []Version{}, map[string]bool{}
	for _, s := range found {
		if s.Err != nil {
			list = append(list, Version{Name: s.ID(), Server: w.title(s.Server), Tenants: w.Sources[s.Server].Tenants, Declared: true, Fault: s.Err.Error()})
			continue
		}
		if d := s.Digest(); d != "" && !seen[d] {
			seen[d] = true
			list = append(list, Version{
				Name: s.ID(), Server: w.title(s.Server), Tenants: w.Sources[s.Server].Tenants, Digest: d, Effect: w.effectOf(s), Claim: claimOf(s), Destructive: w.destructive(s), Trusted: w.Sources[s.Server].Trust, OpenWorld: w.openWorld(s), Declared: true,
				Description: s.Description, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema, Annotations: s.Annotations, Unchecked: s.Unchecked,
			})
		}
	}
	before, err := ReadVersions(dir)
	if err != nil {
		log.WarnContext(ctx, "the stored versions of skills cannot be read", slog.String("error", err.Error()))
	}
	approved, kept := w.approvedDigests(), 0
	for _, s := range before {
		if s.Fault == "" && (approved[s.Digest] || approved == nil && kept < maxVersions) && !seen[s.Digest] {
			s.Declared = false
			list = append(list, s)
			kept++
		}
	}
	if reflect.DeepEqual(list, w.noted) {
		return
	}
	if err := WriteVersions(dir, list); err != nil {
		log.WarnContext(ctx, "the declared versions of skills were not stored", slog.String("error", err.Error()))
		return
	}
	w.noted = list
}

// maxVersions bounds the retained versions, newest first, that are no longer declared, if it is not
// known which are approved.
const maxVersions = 100

// approvedDigests of all tenants; nil: they are not known.
func (w *Watcher) approvedDigests() map[string]bool {
	if w.State == nil {
		return nil
	}
	out := map[string]bool{}
	v := w.State.View()
	for _, tenant := range w.State.Tenants() {
		for _, pin := range v.Pins(tenant) {
			out[pin.Digest] = true
		}
	}
	return out
}
