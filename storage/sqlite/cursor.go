package sqlite

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// cursor is the place of the last document of a page in the order of its query:
// by key if it has one, else, after all that have one, by position; then by row.
type cursor struct {
	Key      any   `json:"k,omitempty"` // string, int64 or float64; nil: the document has none
	Position int64 `json:"p,omitempty"`
	Row      int64 `json:"r"`
}

var errCursor = errors.New("malformed cursor")

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		return "" // strings and finite numbers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(s string) (*cursor, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // the first page has no cursor
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, errCursor
	}
	var c cursor
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil || dec.More() {
		return nil, errCursor
	}
	switch k := c.Key.(type) {
	case nil, string:
	case json.Number:
		if n, err := k.Int64(); err == nil {
			c.Key = n
		} else if c.Key, err = k.Float64(); err != nil {
			return nil, errCursor
		}
	default:
		return nil, errCursor
	}
	return &c, nil
}
