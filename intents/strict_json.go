package intents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// UnmarshalStrict reads one JSON document with nothing after it, and refuses members
// that v does not have.
func UnmarshalStrict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("trailing data")
	}
	return nil
}
