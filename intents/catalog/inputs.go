package catalog

import (
	"encoding/json"
	"maps"
	"slices"
)

// NamedInput is data that an intent uses and that its arguments only name: a blob
// (cas://…), an intent of the same step (sha256:…), or a file.
type NamedInput struct {
	Ref     string
	Pointer string // where its executor finds the data
}

// InputsOf are the inputs of an intent of a type, from its arguments "from" and "inputs".
func InputsOf(row Row, args json.RawMessage) ([]NamedInput, error) {
	var a struct {
		From   string            `json:"from"`
		Inputs map[string]string `json:"inputs"`
	}
	if row.DataAt == "" {
		return nil, nil
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	var out []NamedInput
	if a.From != "" {
		out = append(out, NamedInput{a.From, row.DataAt})
	}
	for _, name := range slices.Sorted(maps.Keys(a.Inputs)) {
		out = append(out, NamedInput{a.Inputs[name], InputAt(name)})
	}
	return out, nil
}

// InputAt is where an executor finds one of several inputs.
func InputAt(name string) string { return "/inputs/" + name }

// DataOf returns what later intents get that name the intent of a result: the data in it, or the
// file that it was written to.
func DataOf(result json.RawMessage) (value json.RawMessage, file string, err error) {
	var r struct {
		Output json.RawMessage `json:"output"`
		Data   json.RawMessage `json:"data"`
		Lines  json.RawMessage `json:"lines"`
		FileID string          `json:"file_id"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return nil, "", err
	}
	if r.FileID != "" {
		return nil, r.FileID, nil
	}
	for _, v := range []json.RawMessage{r.Output, r.Data, r.Lines} {
		if v != nil {
			return v, "", nil
		}
	}
	return result, "", nil
}
