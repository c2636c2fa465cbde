package ledger

import (
	"net/http"
	"os"
	"regexp"
)

// resources are the paths of C2SP tlog-tiles; nothing else of the directory is served.
var resources = regexp.MustCompile(`^(checkpoint|tile/(entries|[0-9]|[1-5][0-9]|6[0-3])/(x[0-9]{3}/)*[0-9]{3}(\.p/[0-9]{1,3})?)$`)

// Handler serves the log to any tlog client (C2SP tlog-tiles): checkpoint and
// tile/…, relative to where it is mounted. No credential is needed: leaves are
// commitments.
func (r *Reader) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := req.URL.Path
		if len(name) > 0 && name[0] == '/' {
			name = name[1:]
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if !resources.MatchString(name) {
			http.Error(w, "no such resource", http.StatusNotFound)
			return
		}
		root, err := os.OpenRoot(r.dir)
		if err != nil {
			http.Error(w, "no such resource", http.StatusNotFound)
			return
		}
		defer func() { _ = root.Close() }() // only read
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		if name == "checkpoint" {
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("Cache-Control", "no-cache")
		} else {
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeFileFS(w, req, root.FS(), name) //nolint:gosec // G703: the name matches resources, below root
	})
}
