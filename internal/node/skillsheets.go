package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"aob.dev/writ/executors/skills"
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

// writeSheets writes down what is declared now, and keeps what is approved beside it, so
// that somebody can see what has changed. A crash leaves the file as it was; where
// it cannot be written, that is said and nothing else is the worse.
func (k *skillKeeper) writeSheets(ctx context.Context, found []skills.Skill) {
	dir, log := k.node.cfg.Dir, k.node.cfg.Log
	list, seen := []SkillSheet{}, map[string]bool{}
	for _, s := range found {
		if d := s.Digest(); s.Err == nil && d != "" && !seen[d] {
			seen[d] = true
			list = append(list, SkillSheet{
				Name: s.Name, Server: k.titles[s.Server], Digest: d, Effect: k.effectOf(s), Declared: true,
				Description: s.Description, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema, Annotations: s.Annotations,
			})
		}
	}
	before, err := ReadSkillSheets(dir)
	if err != nil {
		log.WarnContext(ctx, "the skills that were declared before cannot be read", slog.String("error", err.Error()))
	}
	approved := k.approvedDigests()
	for _, s := range before {
		if approved[s.Digest] && !seen[s.Digest] {
			s.Declared = false
			list = append(list, s)
		}
	}
	raw, err := json.Marshal(list)
	if err == nil && len(raw) > maxSheets {
		err = fmt.Errorf("they have more than %d bytes", maxSheets)
	}
	if err == nil && !bytes.Equal(raw, k.noted) {
		err = durable.Write(sheetsFile(dir), raw)
	}
	if err != nil {
		log.WarnContext(ctx, "the skills that are declared were not written down", slog.String("error", err.Error()))
		return
	}
	k.noted = raw
}

// approvedDigests of all tenants.
func (k *skillKeeper) approvedDigests() map[string]bool {
	out := map[string]bool{}
	v := k.node.directory.View()
	for _, tenant := range k.node.directory.Tenants() {
		for _, pin := range v.Pins(tenant) {
			out[pin.Digest] = true
		}
	}
	return out
}
