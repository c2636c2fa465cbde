//go:build !embedpython && linux && (amd64 || arm64)

package sandbox

import "errors"

// embeddedPython is empty: this program carries no Python. With the build tag
// embedpython it does.
const embeddedPython = ""

func extractPython(string) error { return errors.ErrUnsupported }
