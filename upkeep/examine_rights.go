package upkeep

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/internal/datadir"
)

// maxBarred bounds the findings of files that this user may not use.
const maxBarred = 20

// rights: this user may read and write what is in the data directory, down to its second level;
// below that are only blobs and tiles.
func (e Examination) rights() (list []Finding) {
	more := 0
	_ = filepath.WalkDir(e.Dir, func(path string, d fs.DirEntry, err error) error {
		at, _ := filepath.Rel(e.Dir, path)
		barred := datadir.MayNot(path, true)
		switch {
		case barred != nil && len(list) == maxBarred:
			more++
		case barred != nil:
			list = append(list, wrong("data", barred, ""))
		}
		if d != nil && d.IsDir() && (barred != nil || err != nil || strings.Count(at, string(filepath.Separator)) > 0) {
			return fs.SkipDir
		}
		return nil
	})
	if more > 0 {
		list = append(list, wrong("data", fmt.Errorf("%d more are not this user's", more), giveIt))
	}
	return list
}

// files: this user may read what the configuration names.
func (e Examination) files() (list []Finding) {
	for _, path := range slices.Concat(e.Secrets, e.Named) {
		if err := datadir.MayNot(path, false); path != "" && err != nil {
			list = append(list, wrong("files", err, ""))
		}
	}
	return list
}
