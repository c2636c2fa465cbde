package agents

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"aob.dev/writ/intents"
)

// Bounds of a bundle, in bytes.
const (
	maxBundle = 44 << 10  // packed, since an intent contains it
	maxOpened = 512 << 10 // the revision's files in total
)

// Pack encodes the revision as a bundle, which is part of the intent that pushes it: the JSON of
// path to text, gzipped, in base64. It is empty if the revision is too large for that, and is
// stored with [Revision.Keep].
func (r *Revision) Pack() (string, error) {
	files := make(map[string]string, len(r.files))
	size := 0
	for name, text := range r.files {
		files[name] = string(text)
		size += len(name) + len(text)
	}
	doc, err := intents.MarshalPlain(files)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(doc); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	bundle := base64.StdEncoding.EncodeToString(b.Bytes())
	if len(bundle) > maxBundle || size > maxOpened {
		return "", nil
	}
	return bundle, nil
}

// Unpack decodes the revision of a bundle.
func Unpack(bundle string) (*Revision, error) {
	files, err := unpack(bundle)
	if err != nil {
		return nil, err
	}
	return open(files)
}

// TextOf finds the file of a digest in a bundle.
func TextOf(bundle, digest string) (string, error) {
	files, err := unpack(bundle)
	for _, text := range files {
		if intents.Digest(text) == digest {
			return string(text), err
		}
	}
	return "", errors.Join(err, errors.New("the bundle has no file "+digest))
}

func unpack(bundle string) (map[string][]byte, error) {
	packed, err := base64.StdEncoding.Strict().DecodeString(bundle)
	if err != nil || len(bundle) > maxBundle {
		return nil, errors.New("is no bundle in base64")
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errors.New("is not gzipped")
	}
	doc, err := io.ReadAll(io.LimitReader(r, 2*maxOpened)) // in JSON a text may be longer
	if err != nil {
		return nil, errors.New("is not gzipped")
	}
	if err := intents.Unambiguous(doc); err != nil {
		return nil, err
	}
	var texts map[string]string
	if err := json.Unmarshal(doc, &texts); err != nil {
		return nil, errors.New("is no JSON of path to text")
	}
	size := 0
	files := make(map[string][]byte, len(texts))
	for name, text := range texts {
		files[name] = []byte(text)
		size += len(name) + len(text)
	}
	if size > maxOpened {
		return nil, fmt.Errorf("has more than %d KiB of files", maxOpened>>10)
	}
	return files, nil
}

// Keep stores a revision that is too large for an intent as blobs of tenant system: its files,
// and last the manifest that names them. The digest of the manifest is the revision's.
func (r *Revision) Keep(keep func(content []byte) error) error {
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if err := keep(r.files[name]); err != nil {
			return err
		}
	}
	list, err := intents.FileList(r.files)
	if err != nil {
		return err
	}
	return keep(list)
}

// Load reads the revision of a digest from its blobs. The error is that of read, or Faults.
func Load(digest string, read func(digest string) ([]byte, error)) (*Revision, error) {
	list, err := read(digest)
	if err != nil {
		return nil, err
	}
	var digests map[string]string
	if intents.Unambiguous(list) != nil || json.Unmarshal(list, &digests) != nil {
		return nil, Faults{{Reason: digest + " is no list of files"}}
	}
	files, size := make(map[string][]byte, len(digests)), 0
	for name, of := range digests {
		if files[name], err = read(of); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if size += len(files[name]); size > maxRevision {
			return nil, Faults{{Reason: tooLarge}}
		}
	}
	r, err := open(files)
	if err == nil && r.digest != digest {
		err = Faults{{Reason: "the content has another digest"}}
	}
	return r, err
}
