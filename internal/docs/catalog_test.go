package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// schema is what the page tells of a JSON Schema.
type schema struct {
	ID          string            `json:"$id"`
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Const       any               `json:"const"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Items       *schema           `json:"items"`
}

// catalogPage lists every row of the catalog with the members of its arguments
// and of its result.
func catalogPage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Catalog\n\n" + generated)
	b.WriteString("This page lists every type of order. `GET /v1/catalog` publishes the same rows with their schemas in full; the schemas are in\n" +
		"`schemas/intents/`. *Effect* says what carrying an order out does to the world: `pure` changes nothing, `idempotent` is\n" +
		"the same when done twice, `once` must not be repeated, and `pin` means: as the skill's approval says.\n\n" +
		"For two types the arguments decide a further part of the capability. `soul.put` needs `souls:write:own` for one's own soul and\n" +
		"`souls:write:tenant` for any other. `write_memory` with `scope: tenant` needs `memory:write:tenant`, which only a capability\n" +
		"with a third part gives: neither `memory:*` nor `*:*` lets a user's tasks write what the whole tenant reads. No role has\n" +
		"it until an operator gives it (`writ role put`), and roles with `memory:*` in older logs no longer have it.\n\n" +
		"| type | capability | signed by | executor | effect | ttl | run |\n| :-- | :-- | :-- | :-- | :-- | :-- | :-- |\n")
	for _, r := range catalog.Builtin().Rows() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | `%s` | %s | %s | %s | %d s | %d s |\n", r.Type, anchor(r.Type), r.Capability, joined(r.Signers, "%s", ", "),
			r.Executor, r.Effect, int(r.TTL().Seconds()), int(r.Run().Seconds()))
	}
	for _, r := range catalog.Builtin().Rows() {
		args, err1 := r.ArgsSchema()
		result, err2 := r.ResultSchema()
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", r.Type, r.Title)
		for _, part := range []struct {
			name   string
			source json.RawMessage
		}{{"Arguments", args.Source()}, {"Result", result.Source()}} {
			if err := members(&b, part.name, part.source); err != nil {
				t.Fatalf("%s: %v", r.Type, err)
			}
		}
	}
	return b.Bytes()
}

func members(b *bytes.Buffer, name string, source json.RawMessage) error {
	var s schema
	if err := json.Unmarshal(source, &s); err != nil {
		return err
	}
	fmt.Fprintf(b, "\n%s (`%s`):", name, s.ID)
	if len(s.Properties) == 0 {
		if s.Ref != "" {
			fmt.Fprintf(b, " %s.\n", kind(s))
			return nil
		}
		b.WriteString(" none.\n")
		return nil
	}
	b.WriteString("\n\n")
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p, need := s.Properties[key], ""
		if slices.Contains(s.Required, key) {
			need = ", required"
		}
		fmt.Fprintf(b, "* `%s`: %s%s", key, kind(p), need)
		if p.Description != "" {
			b.WriteString("; " + p.Description)
		}
		b.WriteByte('\n')
	}
	return nil
}

// kind names a schema's type for the page.
func kind(s schema) string {
	switch {
	case len(s.Enum) > 0:
		return joined(s.Enum, "`%v`", " or ")
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Ref != "":
		return "as `" + s.Ref + "`"
	case s.Type == "array" && s.Items != nil:
		return "list of " + kind(*s.Items)
	case s.Type == nil:
		return "any value"
	}
	if list, ok := s.Type.([]any); ok {
		return joined(list, "%v", " or ")
	}
	return fmt.Sprint(s.Type)
}

// joined lists values, each in a format.
func joined[T any](values []T, format, separator string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf(format, v)
	}
	return strings.Join(words, separator)
}

// anchor is the fragment that Markdown makes of a heading.
func anchor(heading string) string { return strings.ReplaceAll(heading, ".", "") }
