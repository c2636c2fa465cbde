package datadir

import (
	"encoding/json"
	"fmt"
	"path/filepath"

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
	Effect       catalog.Effect  `json:"effect"` // as its hints claim
	Declared     bool            `json:"declared"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// maxSkillsFile bounds the file, in bytes.
const maxSkillsFile = 16 << 20

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
