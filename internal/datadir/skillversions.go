package datadir

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
)

// SkillVersion is one version of a tool as its server declared it, for people who approve
// it.
type SkillVersion struct {
	Name         string          `json:"name"`              // the skill's id
	Server       string          `json:"server"`            // its title
	Tenants      []string        `json:"tenants,omitempty"` // for whom it is there; none: for all
	Digest       string          `json:"digest"`
	Effect       catalog.Effect  `json:"effect"`                // as it is approved at first sight
	Claim        catalog.Effect  `json:"claim"`                 // as its hints claim
	Destructive  string          `json:"destructive,omitempty"` // as it is approved unless somebody says otherwise
	Declared     bool            `json:"declared"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// For says whether the skill is there for a tenant.
func (v SkillVersion) For(tenant string) bool {
	return v.Tenants == nil || slices.Contains(v.Tenants, tenant)
}

// maxPinned bounds a schema that stands in an approval, in bytes.
const maxPinned = 16 << 10

// PinnedSchema is the schema of a skill's input as its approval has it: none where it is
// too large or has a number that no intent can have, so that graphs are checked when they run.
func PinnedSchema(schema json.RawMessage) json.RawMessage {
	if len(schema) > maxPinned {
		return nil
	}
	if _, err := intents.Canonical(schema); err != nil {
		return nil
	}
	return schema
}

// Pin is the approval of this version, or else of another one of the skill, which earlier
// builds approved under the name of its tool alone.
func (v SkillVersion) Pin(pins []intents.Pin) (of intents.Pin, pinned bool) {
	for _, pin := range pins {
		switch {
		case pin.Digest == v.Digest:
			return pin, true
		case pin.Skill == v.Name, intents.Pin{Skill: v.Name}.OfTool(pin.Skill) && (pin.Server == "" || pin.Server == v.Server):
			of, pinned = pin, true
		}
	}
	return of, pinned
}

// maxSkillsFile bounds the file, in bytes: a message of the bus carries it.
const maxSkillsFile = 7 << 20

func skillsFile(dir string) string { return filepath.Join(dir, "skills.json") }

// ReadSkillVersions reads what skill servers declared when they were last asked, and the
// approved versions that were seen before. The file is not part of the record: the process
// that uses the data directory writes it again.
func ReadSkillVersions(dir string) (list []SkillVersion, err error) {
	if _, err = durable.ReadJSON(skillsFile(dir), &list); err != nil {
		err = fmt.Errorf("skills of %s: %w", dir, err)
	}
	return list, err
}

// WriteSkillVersions replaces the file.
func WriteSkillVersions(dir string, list []SkillVersion) error {
	raw, err := json.Marshal(list)
	if err == nil && len(raw) > maxSkillsFile {
		err = fmt.Errorf("they have more than %d bytes", maxSkillsFile)
	}
	if err != nil {
		return err
	}
	return durable.Write(skillsFile(dir), raw)
}
