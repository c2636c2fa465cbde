package mcp

import (
	"encoding/base64"
	"mime"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// File is content of an answer that is no text. A link has a URI and no data.
type File struct {
	Type     string // image, audio, resource, link
	MIMEType string // as the server says, if it can be one
	Name     string
	URI      string
	Data     []byte
}

// contents divides the content of an answer into its texts and files.
func contents(list []wire.Content) (texts []string, files []File, err error) {
	for _, content := range list {
		switch c := content.(type) {
		case wire.TextContent:
			texts = append(texts, c.Text)
			continue
		case wire.ImageContent:
			err = addFile(&files, File{Type: "image", MIMEType: c.MIMEType}, c.Data)
		case wire.AudioContent:
			err = addFile(&files, File{Type: "audio", MIMEType: c.MIMEType}, c.Data)
		case wire.ResourceLink:
			files = append(files, File{Type: "link", MIMEType: mimeType(c.MIMEType), Name: printable(c.Name, maxName), URI: printable(c.URI, maxURI)})
		case wire.EmbeddedResource:
			switch r := c.Resource.(type) {
			case wire.TextResourceContents:
				texts = append(texts, r.Text)
			case wire.BlobResourceContents:
				err = addFile(&files, File{Type: "resource", MIMEType: r.MIMEType, URI: printable(r.URI, maxURI)}, r.Blob)
			}
		}
		if err != nil || len(files) > maxFiles {
			return nil, nil, &Error{Kind: ErrSchema, Reason: "its content is no base64, or has too many parts", Err: err}
		}
	}
	return texts, files, nil
}

// Bounds of the files of one answer, beside that of the answer itself.
const (
	maxFiles = 100
	maxURI   = 2048 // bytes
)

func addFile(files *[]File, f File, data string) (err error) {
	f.MIMEType = mimeType(f.MIMEType)
	if f.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
		return err
	}
	*files = append(*files, f)
	return nil
}

// mimeType is a media type without its parameters, or that of any bytes.
func mimeType(text string) string {
	t, _, err := mime.ParseMediaType(text)
	if err != nil || len(t) > maxName || !madeOf(strings.Replace(t, "/", "", 1), alphanumeric+"!#$&^_.+-") {
		return "application/octet-stream"
	}
	return t
}
