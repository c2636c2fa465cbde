package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/internal/visible"
)

// File is content of an answer that is no text. A link has a URI and no data.
type File struct {
	Type     string // image, audio, resource, link
	MIMEType string // as the server declares, if it is valid
	Name     string
	URI      string
	Data     []byte
}

// toolResult is the result of a tool, as received. No fault in it prevents reading the rest: the
// tool has run, and oddities are reported beside the content.
type toolResult struct {
	content    []json.RawMessage
	structured json.RawMessage
	isError    bool
	odd        []string
}

// readAnswer splits a result, and returns as rest the part that the protocol library needs.
func readAnswer(result json.RawMessage) (a toolResult, rest json.RawMessage) {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(result, &members) != nil || members == nil {
		a.odd = append(a.odd, "its answer is no object")
		a.content = []json.RawMessage{result}
		return a, json.RawMessage(`{"content":[]}`)
	}
	content := members["content"]
	if json.Unmarshal(content, &a.content) != nil && !none(content) {
		a.odd = append(a.odd, "its content is no list")
		a.content = []json.RawMessage{content}
	}
	if structured := members["structuredContent"]; len(structured) > maxStructured {
		a.odd = append(a.odd, fmt.Sprintf("its structured content has more than %d bytes and was dropped", maxStructured))
	} else if !none(structured) {
		a.structured = structured
	}
	if failed := members["isError"]; !none(failed) && json.Unmarshal(failed, &a.isError) != nil {
		a.isError = true
		a.odd = append(a.odd, "its isError is neither true nor false")
	}
	if kind := members["resultType"]; !none(kind) && string(kind) != `"complete"` {
		// The library would call again with the requested input, which nobody provides.
		a.isError = true
		a.odd = append(a.odd, "it is not complete: it asks for more than was sent")
		delete(members, "resultType")
	}
	delete(members, "structuredContent")
	delete(members, "isError")
	members["content"] = json.RawMessage("[]")
	rest, err := json.Marshal(members)
	if err != nil {
		rest = json.RawMessage(`{"content":[]}`)
	}
	return a, rest
}

// contents divides the content of an answer into its texts and files. A part of unknown kind is a
// text. odd lists the dropped parts.
func contents(list []json.RawMessage) (texts []string, files []File, odd []string) {
	for n, raw := range list {
		part, f := partOf(raw)
		switch {
		case f == nil:
			texts = append(texts, part)
		case len(files) == maxFiles:
			odd = append(odd, fmt.Sprintf("the %d parts from part %d on were dropped: an answer has at most %d files", len(list)-n, n+1, maxFiles))
			return texts, files, odd
		case f.Data == nil && f.Type != "link":
			odd = append(odd, fmt.Sprintf("part %d was dropped: its data is no base64", n+1))
		default:
			files = append(files, *f)
		}
	}
	return texts, files, odd
}

// partOf is one part of an answer: a text, or a file, which has no data if that cannot be read.
func partOf(raw json.RawMessage) (text string, f *File) {
	content, err := wire.UnmarshalContent(raw)
	if err != nil {
		if json.Unmarshal(raw, &text) != nil {
			text = strings.ToValidUTF8(string(raw), "\uFFFD")
		}
		return text, nil
	}
	switch c := content.(type) {
	case wire.TextContent:
		return c.Text, nil
	case wire.ImageContent:
		return "", newFile(File{Type: "image", MIMEType: c.MIMEType}, c.Data)
	case wire.AudioContent:
		return "", newFile(File{Type: "audio", MIMEType: c.MIMEType}, c.Data)
	case wire.ResourceLink:
		return "", &File{Type: "link", MIMEType: mimeType(c.MIMEType), Name: visible.Line(c.Name, maxName), URI: visible.Line(c.URI, maxURI)}
	case wire.EmbeddedResource:
		switch r := c.Resource.(type) {
		case wire.TextResourceContents:
			return r.Text, nil
		case wire.BlobResourceContents:
			return "", newFile(File{Type: "resource", MIMEType: r.MIMEType, URI: visible.Line(r.URI, maxURI)}, r.Blob)
		}
	}
	return string(raw), nil
}

// Bounds of the files of one answer, beside that of the answer itself.
const (
	maxFiles = 100
	maxURI   = 2048 // bytes
)

// newFile reads data as base64 of either alphabet, with or without its padding.
func newFile(f File, data string) *File {
	f.MIMEType = mimeType(f.MIMEType)
	plain := strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "").Replace(data)
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(plain, "="))
	if err == nil {
		f.Data = append([]byte{}, decoded...) // not nil
	}
	return &f
}

// mimeType is a media type without its parameters, or that of any bytes.
func mimeType(text string) string {
	t, _, err := mime.ParseMediaType(text)
	if err != nil || len(t) > maxName || !madeOf(strings.Replace(t, "/", "", 1), alphanumeric+"!#$&^_.+-") {
		return "application/octet-stream"
	}
	return t
}
