package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
)

// SkillSheet is a tool as its server declared it, for people who approve it.
type SkillSheet struct {
	Name         string          `json:"name"`
	Server       string          `json:"server"` // for people: its title
	Digest       string          `json:"digest"`
	Effect       catalog.Effect  `json:"effect"` // as its hints claim
	Declared     bool            `json:"declared"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// maxSheets bounds the file of sheets, in bytes.
const maxSheets = 16 << 20

func sheetsFile(dir string) string { return filepath.Join(dir, "skills.json") }

// ReadSkillSheets reads what skill servers declared when they were last asked, and
// the approved versions that were seen before. It is no part of the record: the
// process that uses the data directory writes it anew.
func ReadSkillSheets(dir string) ([]SkillSheet, error) {
	raw, err := os.ReadFile(sheetsFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []SkillSheet
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("skills of %s: %w", dir, err)
	}
	return list, nil
}

// WriteSkillSheets replaces what was written before.
func WriteSkillSheets(dir string, list []SkillSheet) error {
	raw, err := json.Marshal(list)
	if err == nil && len(raw) > maxSheets {
		err = fmt.Errorf("they have more than %d bytes", maxSheets)
	}
	if err != nil {
		return err
	}
	return durable.Write(sheetsFile(dir), raw)
}
