//go:build embedpython && linux && (amd64 || arm64)

package sandbox

import embedded "github.com/kluctl/go-embed-python/python"

// embeddedPython is the version of the Python that this program carries, as in
// go.mod; empty: it carries none. It takes part in the name of the runtime.
const embeddedPython = "3.14.6-20260610-1"

// extractPython writes the Python that this program carries to dir, about 150 MB.
func extractPython(dir string) error {
	_, err := embedded.NewEmbeddedPythonWithTmpDir(dir, false)
	return err
}
