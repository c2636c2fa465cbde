package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
)

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
