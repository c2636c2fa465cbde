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

// InputsIn is InputsOf for arguments that are decoded and match their schema.
func InputsIn(row Row, decoded any) []NamedInput {
	args, _ := decoded.(map[string]any)
	if row.DataAt == "" {
		return nil
	}
	from, _ := args["from"].(string)
	inputs, _ := args["inputs"].(map[string]any)
	named := make(map[string]string, len(inputs))
	for name, v := range inputs {
		named[name], _ = v.(string)
	}
	return row.inputs(from, named)
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
	return row.inputs(a.From, a.Inputs), nil
}

func (r Row) inputs(from string, named map[string]string) (out []NamedInput) {
	if from != "" {
		out = append(out, NamedInput{from, r.DataAt})
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		out = append(out, NamedInput{named[name], InputAt(name)})
	}
	return out
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
