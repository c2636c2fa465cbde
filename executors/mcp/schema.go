package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxViolations is how many violations an error names.
const maxViolations = 3

// noLoader refuses every reference out of a schema: a manifest is complete,
// and compiling one must read neither files nor the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to another document (%s)", url)
}

// compile compiles a schema of a manifest; Draft 2020-12 unless it says otherwise.
func compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const url = "urn:skill"
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// check validates a JSON document; the error names pointers and reasons.
func check(s *jsonschema.Schema, doc []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	err = s.Validate(v)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var found []string
	for _, u := range invalid.BasicOutput().Errors {
		if u.Error == nil {
			continue
		}
		at := u.InstanceLocation
		if at == "" {
			at = "/"
		}
		found = append(found, fmt.Sprintf("%s: %s", printable(at, 200), printable(u.Error.String(), 300)))
	}
	if more := len(found) - maxViolations; more > 0 {
		found = append(found[:maxViolations], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(found, "; "))
}
