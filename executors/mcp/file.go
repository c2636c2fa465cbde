package mcp

import (
	"encoding/base64"
	"mime"
	"strings"
)

// File is content of an answer that is no text. A link has a URI and no data.
type File struct {
	Type     string // image, audio, resource, link
	MIMEType string // as the server declares, if it is valid
	Name     string
	URI      string
	Data     []byte
}

// Bounds of the files of one answer, beside that of the answer itself.
const (
	maxFiles    = 100
	maxURI      = 2048 // bytes
	maxLinkName = 128  // bytes of a name or a media type
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
	if err != nil || len(t) > maxLinkName || !madeOf(strings.Replace(t, "/", "", 1), alphanumeric+"!#$&^_.+-") {
		return "application/octet-stream"
	}
	return t
}
