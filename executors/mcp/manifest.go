package mcp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// Manifest is a tool as its server declares it.
type Manifest struct {
	Name         string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	// Annotations as declared. Hints are claims of the server; they become an
	// effect only when somebody approves them.
	Annotations json.RawMessage
	Hints
	// Of a skill that a service loads: how it says that it runs the skill, and where. Empty: it does
	// not say. writ calls the skill at the service, and waits for the answer.
	ExecutionMode, Endpoint string

	Server string // whose tool it is, see Source.Server: for the digest only

	digest string // computed when the tool was read; empty: Digest computes it

	// Unchecked says what of the declaration writ does not check or shows in another form.
	Unchecked []string

	declared string // the name by which the server knows the tool, if Name is another

	// Err is set if the tool cannot be called: without a name, or with that of another tool. It
	// wraps ErrSchema.
	Err error
}

// Hints are the annotations of a tool about its calls; nil: none.
type Hints struct {
	ReadOnlyHint    *bool `json:"readOnlyHint"`
	IdempotentHint  *bool `json:"idempotentHint"`
	DestructiveHint *bool `json:"destructiveHint"`
	OpenWorldHint   *bool `json:"openWorldHint"`
}

// Destroys reports whether the server itself declares that a call may destroy something.
func (h Hints) Destroys() bool { return h.DestructiveHint != nil && *h.DestructiveHint }

// maxName bounds a tool's name in bytes. With its server's it fits into the id of a skill.
const maxName = 128 - 1 - maxServerName

// Digest identifies the declaration and its server: "sha256:" and the hex SHA-256 of
// the RFC 8785 canonical JSON of
//
//	{"annotations":…,"description":…,"input_schema":…,"name":…,"output_schema":…,"server":{"name":…,"origin":…}}
//
// with null for what is not declared, and with execution_mode and endpoint if a Skill Service gives
// them. White space and the order of members, and of the values of
// required, enum and type in schemas, do not matter. Any other change is another version, which needs approval, as is the same tool of another server. The
// digest of a manifest without one meaning is empty.
func (m *Manifest) Digest() string {
	if m.digest != "" {
		return m.digest
	}
	b, err := json.Marshal(struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		OutputSchema json.RawMessage `json:"output_schema"`
		Annotations  json.RawMessage `json:"annotations"`
		Mode         string          `json:"execution_mode,omitempty"`
		Endpoint     string          `json:"endpoint,omitempty"`
		Server       json.RawMessage `json:"server,omitempty"`
	}{m.Declared(), m.Description, ordered(m.InputSchema), ordered(m.OutputSchema), m.Annotations, m.ExecutionMode, m.Endpoint, json.RawMessage(m.Server)})
	if err != nil {
		return ""
	}
	canonical, err := exact(b)
	if err != nil {
		return ""
	}
	return intents.Digest(canonical)
}

// ordered is a schema whose lists without an order are sorted, if it can be read in one way only.
func ordered(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 || intents.Unambiguous(schema) != nil {
		return schema
	}
	return schemas.Ordered(schema)
}

// exact is the canonical JSON of a manifest. Numbers that it has and RFC 8785 does not, such as the largest
// of 64 bits, are null there, and their digits stand in a member of their own, "numbers", by their pointers.
func exact(manifest []byte) ([]byte, error) {
	if canonical, err := intents.Canonical(manifest); err == nil {
		return canonical, nil
	}
	if err := intents.Unambiguous(manifest); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(manifest))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	numbers := map[string]string{}
	doc["numbers"] = numbers
	for name, v := range doc {
		doc[name] = withoutNumbers(v, "/"+name, numbers)
	}
	text, err := intents.MarshalPlain(doc)
	if err != nil {
		return nil, err
	}
	return intents.Canonical(text)
}

// withoutNumbers is a value with null for the numbers that have no canonical form. Those are put into numbers.
func withoutNumbers(v any, pointer string, numbers map[string]string) any {
	switch v := v.(type) {
	case json.Number:
		if _, err := intents.Canonical([]byte(v)); err != nil {
			numbers[pointer] = v.String()
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutNumbers(v[i], pointer+"/"+strconv.Itoa(i), numbers)
		}
	case map[string]any:
		for name := range v {
			v[name] = withoutNumbers(v[name], pointer+"/"+schemas.Escape(name), numbers)
		}
	}
	return v
}

// Declared is the name by which the server knows the tool.
func (m *Manifest) Declared() string { return cmp.Or(m.declared, m.Name) }

// tool is a manifest with the schema of its output (nil: none declared).
type tool struct {
	Manifest
	output *schemas.Schema
}

// parseTool reads one entry of tools/list. Err describes why it cannot be called.
func parseTool(raw json.RawMessage, src Source) *tool {
	t := &tool{Manifest: Manifest{Server: src.Server()}}
	if err := t.read(raw); errors.Is(err, ErrNotOffered) && src.OpenAPI != "" {
		t.Err = err
	} else if err != nil {
		t.Err = &Error{Kind: ErrSchema, Tool: visible.Line(t.Name, maxName), Reason: "bad manifest", Err: err}
	}
	return t
}

func (t *tool) read(raw json.RawMessage) error {
	raw, err := oneMeaning(raw)
	if err != nil {
		return err
	}
	var in struct {
		Name         json.RawMessage
		Description  any
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
		Annotations  json.RawMessage
		Mode         any `json:"executionMode"` // of a Skill Service, as the next
		Endpoint     any
		NotOffered   string `json:"notOffered"` // of operationTool
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	if in.Description != nil {
		t.Description = textOf(in.Description)
	}
	t.InputSchema, t.OutputSchema, t.Annotations = in.InputSchema, in.OutputSchema, in.Annotations
	if err := t.named(in.Name); err != nil {
		return err
	}
	if len(in.Annotations) > 0 && json.Unmarshal(in.Annotations, &t.Hints) != nil {
		yes := true // the worst, since what it says cannot be known
		t.Hints = Hints{DestructiveHint: &yes}
		t.unchecked("annotations: they are malformed, and say nothing")
	}
	if in.Mode != nil {
		t.ExecutionMode = textOf(in.Mode)
	}
	if in.Endpoint != nil {
		t.Endpoint = textOf(in.Endpoint)
		t.unchecked("endpoint: writ calls the skill at its service, not at " + visible.Line(t.Endpoint, maxName))
	}
	if in.NotOffered != "" {
		return &Error{Kind: ErrNotOffered, Tool: t.Name, Reason: visible.Line(in.NotOffered, maxReason)}
	}
	if err := t.readSchemas(); err != nil {
		return err
	}
	if t.digest = t.Digest(); t.digest == "" {
		return errors.New("no canonical form: it is nested too deeply")
	}
	known := wire.Tool{Name: t.Name, RawInputSchema: schemas.Tolerate(t.InputSchema).Shown}
	return wire.ValidateParamHeaderAnnotations(&known)
}

// oneMeaning is a declaration that all read alike: of a member that occurs twice the last counts, and a
// character that is not whole is replaced. Every reader of writ has this one.
func oneMeaning(raw json.RawMessage) (json.RawMessage, error) {
	if intents.Unambiguous(raw) == nil {
		return raw, nil
	}
	v, err := schemas.Decode(raw)
	if err != nil {
		return nil, err
	}
	return intents.MarshalPlain(v)
}

// named takes the tool's name. One that the id of a skill cannot have is written in another way, with
// digits of its SHA-256, which stays the same as long as the server keeps the name.
func (t *tool) named(raw json.RawMessage) error {
	var name string
	if json.Unmarshal(raw, &name) != nil || name == "" {
		return fmt.Errorf("a tool has a name of 1 to %d characters", maxName)
	}
	if t.Name = name; len(name) <= maxName && madeOf(name, nameCharacters) {
		return nil
	}
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune(nameCharacters, r) {
			return r
		}
		return '_'
	}, name)
	sum := sha256.Sum256([]byte(name))
	t.Name, t.declared = plain[:min(len(plain), nameKept)]+"_"+hex.EncodeToString(sum[:4]), name
	t.unchecked("name: the server calls it " + visible.Line(name, 2*maxName))
	return nil
}

// nameKept is how much of a name stays that is written in another way.
const nameKept = 44

// nameCharacters are those of the names that the protocol recommends.
const nameCharacters = alphanumeric + "_-./"

func (t *tool) unchecked(notes ...string) { t.Unchecked = append(t.Unchecked, notes...) }

// readSchemas compiles the schemas as far as they can be.
func (t *tool) readSchemas() error {
	if none(t.InputSchema) {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
		t.unchecked("input schema: there is none, so that nothing is checked")
	}
	if string(t.InputSchema) == "false" {
		return errors.New("input schema: it accepts no input")
	}
	for _, note := range schemas.Tolerate(t.InputSchema).Notes {
		t.unchecked("input schema: " + note)
	}
	if none(t.OutputSchema) {
		return nil
	}
	s := schemas.Tolerate(t.OutputSchema)
	t.output = s.Schema
	for _, note := range s.Notes {
		t.unchecked("output schema: " + note)
	}
	return nil
}

func none(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
