package approval

import (
	"log/slog"
	"strings"
	"testing"
)

// TestUndeclaredVersions: where it is not known what is approved, the newest versions that are gone
// are kept, so that people can compare.
func TestUndeclaredVersions(t *testing.T) {
	w := New(nil, t.TempDir(), slog.New(slog.DiscardHandler))
	var before []Version
	for i := range maxVersions + 5 {
		before = append(before, Version{Name: "crm.x", Digest: strings.Repeat("a", i), Declared: i == 0})
	}
	if err := WriteVersions(w.Dir, before); err != nil {
		t.Fatal(err)
	}
	w.writeVersions(t.Context(), nil)
	now, err := ReadVersions(w.Dir)
	if err != nil || len(now) != maxVersions || now[0].Declared || now[1].Digest != "a" {
		t.Errorf("error %v; %d versions: %+v", err, len(now), now)
	}
}
