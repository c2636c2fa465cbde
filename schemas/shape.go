package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Bounds of a shape.
const (
	MaxShapeSize  = 4 << 10
	MaxShapeDepth = 16
)

// CompileShape turns the shorthand of return_spec.shape into a JSON Schema:
//
//	shape  = type *( "|" type )                 ; one of them
//	type   = scalar / "array" [ "<" shape ">" ] / object / "(" shape ")"
//	scalar = "string" / "number" / "integer" / "boolean" / "null" / "any"
//	object = "object" / "{" [ member *( "," member ) ] "}"
//	member = name [ ":" shape ]                 ; no shape: any value but null
//	name   = 1*64( ALPHA / DIGIT / "_" / "-" )
//
// White space between tokens is free. The members of {…} are required and no
// others are allowed; object alone allows any. A string that begins with `{"`
// is a JSON Schema itself and is returned as it is, if it compiles.
//
//	array<{place: string, magnitude: number}>
//	{count: integer, note: string|null}
func CompileShape(shape string) (json.RawMessage, error) {
	if strings.HasPrefix(strings.TrimSpace(shape), `{"`) {
		if _, err := Compile([]byte(shape)); err != nil {
			return nil, fmt.Errorf("shape: %w", err)
		}
		return json.RawMessage(shape), nil
	}
	if len(shape) > MaxShapeSize {
		return nil, fmt.Errorf("shape has more than %d bytes", MaxShapeSize)
	}
	p := shapeParser{rest: shape}
	node, err := p.shape(1)
	if err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	if p.skip(); p.rest != "" {
		return nil, fmt.Errorf("shape: unexpected %q", first(p.rest))
	}
	node["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	return json.Marshal(node)
}

type shapeParser struct{ rest string }

type schemaNode = map[string]any

func (p *shapeParser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take consumes one punctuation mark.
func (p *shapeParser) take(mark string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, mark)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *shapeParser) expect(mark string) error {
	if p.take(mark) {
		return nil
	}
	if p.rest == "" {
		return fmt.Errorf("ends where %q must stand", mark)
	}
	return fmt.Errorf("%q must stand before %q", mark, first(p.rest))
}

func (p *shapeParser) name() (string, error) {
	p.skip()
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	})
	if end < 0 {
		end = len(p.rest)
	}
	switch {
	case end == 0 && p.rest == "":
		return "", errors.New("ends where a name must stand")
	case end == 0:
		return "", fmt.Errorf("a name must stand before %q", first(p.rest))
	case end > 64:
		return "", errors.New("a name has more than 64 characters")
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	return name, nil
}

func (p *shapeParser) shape(depth int) (schemaNode, error) {
	if depth > MaxShapeDepth {
		return nil, fmt.Errorf("deeper than %d", MaxShapeDepth)
	}
	node, err := p.typ(depth)
	if err != nil || !p.take("|") {
		return node, err
	}
	branches := []any{node}
	for {
		next, err := p.typ(depth)
		if err != nil {
			return nil, err
		}
		branches = append(branches, next)
		if !p.take("|") {
			return schemaNode{"anyOf": branches}, nil
		}
	}
}

func (p *shapeParser) typ(depth int) (schemaNode, error) {
	if p.take("(") {
		node, err := p.shape(depth + 1)
		if err != nil {
			return nil, err
		}
		return node, p.expect(")")
	}
	if p.take("{") {
		return p.object(depth)
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	switch name {
	case "string", "number", "integer", "boolean", "null", "object":
		return schemaNode{"type": name}, nil
	case "any":
		return schemaNode{}, nil
	case "array":
		return p.array(depth)
	}
	return nil, fmt.Errorf("no type %q: string, number, integer, boolean, null, any, object, array<…> or {…}", name)
}

func (p *shapeParser) array(depth int) (schemaNode, error) {
	if !p.take("<") {
		return schemaNode{"type": "array"}, nil
	}
	items, err := p.shape(depth + 1)
	if err != nil {
		return nil, err
	}
	return schemaNode{"type": "array", "items": items}, p.expect(">")
}

// object reads the members after "{".
func (p *shapeParser) object(depth int) (schemaNode, error) {
	properties, required := schemaNode{}, []string{}
	for !p.take("}") {
		if len(required) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if _, dup := properties[name]; dup {
			return nil, fmt.Errorf("member %q stands twice", name)
		}
		member := schemaNode{"not": schemaNode{"type": "null"}}
		if p.take(":") {
			if member, err = p.shape(depth + 1); err != nil {
				return nil, err
			}
		}
		properties[name] = member
		required = append(required, name)
	}
	return schemaNode{"type": "object", "properties": properties, "required": required, "additionalProperties": false}, nil
}

// first is the beginning of the rest, for messages.
func first(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
