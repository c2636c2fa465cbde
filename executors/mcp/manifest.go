package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

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
	Server string // whose tool it is, see Source.Server: for the digest only

	digest string // computed when the tool was read; empty: Digest computes it

	// Err is set if the tool cannot be used as declared: a schema that does
	// not compile, a name that is taken or no name. It wraps ErrSchema.
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

// maxName bounds a tool's name in bytes, as the protocol does.
const maxName = 128

// Digest identifies the declaration and its server: "sha256:" and the hex SHA-256 of
// the RFC 8785 canonical JSON of
//
//	{"annotations":…,"description":…,"input_schema":…,"name":…,"output_schema":…,"server":{"name":…,"origin":…}}
//
// with null for what is not declared. White space and the order of members do not matter. Any other
// change is another version, which needs approval, as is the same tool of another server. The
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
		Server       json.RawMessage `json:"server,omitempty"`
	}{m.Name, m.Description, m.InputSchema, m.OutputSchema, m.Annotations, json.RawMessage(m.Server)})
	if err != nil {
		return ""
	}
	canonical, err := exact(b)
	if err != nil {
		return ""
	}
	return intents.Digest(canonical)
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

// tool is a manifest with its compiled output schema (nil: none declared).
type tool struct {
	Manifest
	output *schemas.Schema
}

// parseTool reads one entry of tools/list. Err describes its fault.
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
	var in struct {
		Name         string
		Description  string
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
		Annotations  json.RawMessage
		NotOffered   string `json:"notOffered"` // of operationTool
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	t.Name, t.Description = in.Name, in.Description
	t.InputSchema, t.OutputSchema, t.Annotations = in.InputSchema, in.OutputSchema, in.Annotations
	if err := validName(in.Name); err != nil {
		return err
	}
	if len(in.Annotations) > 0 {
		if err := json.Unmarshal(in.Annotations, &t.Hints); err != nil {
			return fmt.Errorf("annotations: %w", err)
		}
	}
	if in.NotOffered != "" {
		return &Error{Kind: ErrNotOffered, Tool: t.Name, Reason: visible.Line(in.NotOffered, maxReason)}
	}
	if err := t.compile(); err != nil {
		return err
	}
	if t.digest = t.Digest(); t.digest == "" {
		return errors.New("no canonical form: a member occurs twice, a character is not whole, or it is nested too deeply")
	}
	var known wire.Tool
	if err := json.Unmarshal(raw, &known); err != nil {
		return err
	}
	return wire.ValidateParamHeaderAnnotations(&known)
}

func (t *tool) compile() error {
	if none(t.InputSchema) {
		return errors.New("input schema: not declared")
	}
	if _, err := schemas.Compile(t.InputSchema); err != nil {
		return fmt.Errorf("input schema: %w", err)
	}
	if none(t.OutputSchema) {
		return nil
	}
	s, err := schemas.Compile(t.OutputSchema)
	if err != nil {
		return fmt.Errorf("output schema: %w", err)
	}
	t.output = s
	return nil
}

func none(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// validName accepts the names that the protocol recommends.
func validName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name has 1 to %d bytes", maxName)
	}
	if !madeOf(name, alphanumeric+"_-./") {
		return fmt.Errorf("the name %q: only letters, digits and _ - . / are allowed", visible.Line(name, maxName))
	}
	return nil
}
