package catalog

import "encoding/json"

// ReadSkill is the name of the tool that stands for the resources and prompts of a server: it is
// approved like the server's own, and only resource.read uses it.
const ReadSkill = "resources/read"

// ResourceRead are the arguments of resource.read: a resource by its URI, or a prompt with its
// arguments; with neither the server's lists are read.
type ResourceRead struct {
	Skill     string            `json:"skill,omitempty"` // <server>.resources/read
	URI       string            `json:"uri,omitempty"`
	Prompt    string            `json:"prompt,omitempty"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

// ResourceLists is the output of resource.read without URI and prompt: entries as the protocol has
// them.
type ResourceLists struct {
	Resources []json.RawMessage `json:"resources"`
	Templates []json.RawMessage `json:"templates"`
	Prompts   []json.RawMessage `json:"prompts"`
}

// ContentFile stands in a part of content where its bytes were: they are a temporary file of a
// step.
type ContentFile struct {
	FileID    string `json:"file_id"`
	Plan      string `json:"plan_id"`
	Revision  int    `json:"revision"`
	Step      int    `json:"step"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// PartBytes finds in a part of content, a message of a prompt or the contents of a resource the
// member that may be large: text, or base64. in is nil if there is none.
func PartBytes(part map[string]any) (in map[string]any, member string) {
	within := func(name string) (map[string]any, string) {
		inner, _ := part[name].(map[string]any)
		return PartBytes(inner)
	}
	kind, typed := part["type"].(string)
	_, message := part["role"]
	_, blob := part["blob"]
	switch {
	case kind == "image", kind == "audio":
		return part, "data"
	case kind == "text":
		return part, "text"
	case kind == "resource":
		return within("resource")
	case typed, part == nil:
		return nil, ""
	case message:
		return within("content")
	case blob:
		return part, "blob"
	}
	return part, "text"
}
