package policies

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
)

// Tree is a source with its revision, as in a signed bundle. A directory has none: revision 0.
type Tree struct {
	Source   Source
	Revision int64
}

// extensionRoot is the prefix of the packages of extension trees.
const extensionRoot = "data.writ.ext."

// Extend adds further trees to a source, each below ext/ and its name. A further tree can only
// tighten: every module of it is in a package data.writ.ext.<name> or below, of which the engine
// queries only deny and hold, and it has no data files, since other rules might read those.
func Extend(base Source, more map[string]Source) (Source, error) {
	out := maps.Clone(base)
	for name, ext := range more {
		for file, content := range ext {
			if isData(file) {
				return nil, fmt.Errorf("extension %s: %s: an extension has no data files", name, file)
			}
			m, err := parseModule(file, content)
			if err != nil {
				return nil, fmt.Errorf("extension %s: %w", name, err)
			}
			if pkg := m.Package.Path.String(); !strings.HasPrefix(pkg, extensionRoot) {
				return nil, fmt.Errorf("extension %s: %s is in package %s: an extension is in packages %s<name>",
					name, file, strings.TrimPrefix(pkg, "data."), strings.TrimPrefix(extensionRoot, "data."))
			}
			at := path.Join("ext", name, file)
			if _, taken := out[at]; taken {
				return nil, fmt.Errorf("extension %s: %s stands in the tree already", name, at)
			}
			out[at] = content
		}
	}
	return out, nil
}

// ErrOlder refuses a tree because the one in force is newer.
var ErrOlder = errors.New("an older revision never replaces a newer one")
