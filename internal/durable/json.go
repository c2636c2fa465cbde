package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteJSON is Write for a JSON document. It makes the directory of the file, too.
func WriteJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return Write(path, append(raw, '\n'))
}

// ReadJSON reads a document that WriteJSON wrote. If there is no such file, it returns false and
// leaves v unchanged.
func ReadJSON(path string, v any) (there bool, err error) { return read(path, v, false) }

// ReadExactJSON is ReadJSON, and refuses members that v does not have.
func ReadExactJSON(path string, v any) (there bool, err error) { return read(path, v, true) }

func read(path string, v any, exact bool) (there bool, err error) {
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the caller names it
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && exact {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		err = dec.Decode(v)
	} else if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return true, err
}
