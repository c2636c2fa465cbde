package agents

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Change is the revision of a bundle, which may be empty, with one agent put: its document is JSON, and may leave out its
// name. The file of the agent before is replaced. The error is Faults, or that the bundle is none.
func Change(bundle, name string, doc []byte) (*Revision, error) {
	files, path := map[string][]byte{}, "agents/"+name+".yaml"
	if bundle != "" {
		was, err := Unpack(bundle)
		if err != nil {
			return nil, err
		}
		files = maps.Clone(was.files)
		if d, ok := was.Agent(name); ok {
			path = d.File
		} else {
			for files[path] != nil { // another agent's
				path = strings.TrimSuffix(path, ".yaml") + "_.yaml"
			}
		}
	}
	text, err := named(name, doc)
	if err != nil {
		return nil, err
	}
	files[path] = text
	return open(files)
}

// named is a document of JSON with its name, and with its members in their order, which properties have.
func named(name string, doc []byte) ([]byte, error) {
	var line bytes.Buffer
	var is struct {
		Name    string `json:"name"`
		AgentID string `json:"agent_id"`
	}
	if json.Unmarshal(doc, &is) != nil || json.Compact(&line, doc) != nil || line.Bytes()[0] != '{' {
		return nil, Faults{{Reason: "is no JSON object with a name"}}
	}
	switch text := line.Bytes(); {
	case is.Name != "" && is.Name != name:
		return nil, Faults{{Pointer: "/name", Reason: "is not the name in the path"}}
	case is.AgentID != "" && is.AgentID != name:
		return nil, Faults{{Pointer: "/agent_id", Reason: "is not the name in the path"}}
	case is.Name == "" && is.AgentID == "" && len(text) > len("{}"):
		quoted, err := json.Marshal(name)
		return slices.Concat([]byte(`{"name":`), quoted, []byte(","), text[1:]), err
	default:
		return text, nil
	}
}
