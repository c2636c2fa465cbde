package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Part is a part of an answer as its server sent it.
type Part struct {
	JSON map[string]any // without the bytes of File
	File int            // number of its bytes among the files of the result, from 1; 0: none
}

// partMembers are the members of a part that pass, by its type.
var partMembers = map[string][]string{
	"text":          {"text"},
	"image":         {"data", "mimeType"},
	"audio":         {"data", "mimeType"},
	"resource_link": {"uri", "name", "title", "description", "mimeType", "size", "icons"},
	"resource":      {"resource"},
}

// ofResource are the members of a resource's contents that pass.
var ofResource = []string{"uri", "mimeType", "text", "blob", "_meta"}

// newPart makes a part of one that partOf has read. One of an unknown type, or that is not JSON to
// everyone, is its text.
func newPart(raw json.RawMessage, text string, file int) Part {
	var m map[string]any
	_, err := wire.UnmarshalContent(raw)
	if err == nil && intents.Unambiguous(raw) == nil {
		err = json.Unmarshal(raw, &m)
	}
	kind, _ := m["type"].(string)
	known := partMembers[kind]
	if err != nil || known == nil {
		return Part{JSON: map[string]any{"type": "text", "text": text}}
	}
	maps.DeleteFunc(m, func(name string, _ any) bool {
		return !slices.Contains(known, name) && !slices.Contains([]string{"type", "annotations", "_meta"}, name)
	})
	if of, ok := m["resource"].(map[string]any); ok {
		maps.DeleteFunc(of, func(name string, _ any) bool { return !slices.Contains(ofResource, name) })
	}
	if file > 0 {
		in, member := catalog.PartBytes(m)
		delete(in, member)
		if member == "blob" || member == "text" {
			in["blob"] = nil // a text beside it says nothing
			delete(in, "text")
		}
	}
	return Part{JSON: m, File: file}
}

// saysAll reports whether an answer's data says all that its parts say.
func saysAll(parts []Part, a toolResult) bool {
	if len(parts) != 1 || len(parts[0].JSON) != 2 || parts[0].JSON["type"] != "text" {
		return len(parts) == 0
	}
	if a.structured == nil {
		return true
	}
	var x, y bytes.Buffer
	text, _ := parts[0].JSON["text"].(string)
	return json.Compact(&x, a.structured) == nil && json.Compact(&y, []byte(text)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
