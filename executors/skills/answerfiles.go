package skills

import (
	"bytes"
	"context"
	"encoding/json"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
)

// fileRef refers to an image or another file of an answer, stored as a temporary file of the step:
// no prompt contains its bytes. A link has only a URI.
type fileRef struct {
	Type     string `json:"type"`
	MIMEType string `json:"mime_type"`
	Name     string `json:"name,omitempty"`
	URI      string `json:"uri,omitempty"`
	FileID   string `json:"file_id,omitempty"`
	Size     int64  `json:"size_bytes,omitempty"`
	SHA256   string `json:"sha256,omitempty"`
}

// withFiles stores the files of an answer and adds references to them to the answer. A crash leaves
// files of the step, which are removed with it.
func (s *skills) withFiles(ctx context.Context, in invocation, c executors.Content, files []mcp.File) (executors.Content, error) {
	var out struct {
		Result any       `json:"result,omitempty"`
		Files  []fileRef `json:"files"`
	}
	switch {
	case len(c.JSON) > 0:
		out.Result = c.JSON
	case c.Text != "":
		out.Result = c.Text
	}
	for _, f := range files {
		ref := fileRef{Type: f.Type, MIMEType: f.MIMEType, Name: f.Name, URI: f.URI}
		if f.Type != "link" {
			scope, err := in.intent.Scope()
			if err != nil {
				return c, err
			}
			stored, err := s.Blobs.Put(ctx, scope, bytes.NewReader(f.Data))
			if err != nil {
				return c, executors.Store(err)
			}
			ref.FileID, ref.Size, ref.SHA256 = stored.ID, stored.Size, stored.SHA256
		}
		out.Files = append(out.Files, ref)
	}
	raw, err := json.Marshal(out)
	return executors.Content{JSON: raw}, err
}
