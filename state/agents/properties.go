package agents

import (
	"bytes"
	"encoding/json"

	"aob.dev/writ/intents"
)

// Property is a JSON Schema with a name.
type Property struct {
	Name   string
	Schema json.RawMessage
}

// Properties are the members of an object in their written order: a model fills them in, and
// considers them, one after the other.
type Properties []Property

// MarshalJSON encodes one object.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := intents.MarshalPlain(m.Name)
		if err != nil {
			return nil, err
		}
		b.Write(append(name, ':'))
		b.Write(m.Schema)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON decodes one object.
func (p *Properties) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	var all Properties
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var m Property
		m.Name, _ = name.(string)
		if err := dec.Decode(&m.Schema); err != nil {
			return err
		}
		all = append(all, m)
	}
	*p = all
	return nil
}

func (p Properties) names() []string {
	names := []string{}
	for _, m := range p {
		names = append(names, m.Name)
	}
	return names
}

// schema is the object that has these members.
func (p Properties) schema(required []string) ([]byte, error) {
	if len(required) == 0 {
		required = p.names()
	}
	return intents.MarshalPlain(struct {
		Type       string     `json:"type"`
		Properties Properties `json:"properties"`
		Required   []string   `json:"required"`
		Additional bool       `json:"additionalProperties"`
	}{"object", p, required, false})
}
