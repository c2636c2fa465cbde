//go:build linux

package sandbox

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Init()
	os.Exit(m.Run())
}

func TestOpenRun(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s.Driver(), s.Python())
	for range 3 {
		r, err := s.Run(t.Context(), Job{Script: "print('hi', input_file)"})
		t.Logf("%+v %v", r, err)
		t.Logf("%s", r.Output)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
