package mcp

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// SecretFile is a value that stands in a file, which is read again when it has changed. While it cannot be read, or
// has no valid value, the last one stays.
type SecretFile struct {
	Path string

	mu    sync.Mutex
	seen  []string // values, the newest last
	stamp time.Time
	size  int64
}

// maxSeen bounds the values that are hidden.
const maxSeen = 10

// Value is the value now.
func (f *SecretFile) Value() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.Path)
	if err == nil && (!info.ModTime().Equal(f.stamp) || info.Size() != f.size) {
		raw, err := os.ReadFile(f.Path)
		if value := strings.TrimRight(string(raw), "\r\n"); err == nil && value != "" && httpguts.ValidHeaderFieldValue(value) {
			f.stamp, f.size = info.ModTime(), info.Size()
			f.seen = append(f.seen, value)
			f.seen = f.seen[max(0, len(f.seen)-maxSeen):]
		}
	}
	if len(f.seen) == 0 {
		return ""
	}
	return f.seen[len(f.seen)-1]
}

// hide removes all values from a text.
func (f *SecretFile) hide(text string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, value := range f.seen {
		if len(value) >= shortestSecret {
			text = strings.ReplaceAll(text, value, "(secret)")
		}
	}
	return text
}

// headers are the source's headers now.
func (s *Settings) headers() http.Header {
	if len(s.HeaderFiles) == 0 {
		return s.Header
	}
	h := s.Header.Clone()
	for name, f := range s.HeaderFiles {
		if value := f.Value(); value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// Secret is the client's secret now.
func (o OAuth) Secret() string {
	if o.SecretFile != nil {
		return o.SecretFile.Value()
	}
	return o.ClientSecret
}
