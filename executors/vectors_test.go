package executors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/intentstest"
	"aob.dev/writ/internal/testing/ticketvectors"
)

// fixedKeys are those of all vectors.
func fixedKeys(t *testing.T) ticketvectors.Keys {
	t.Helper()
	key := func(role intents.Role, name string) intents.Signer { return intentstest.Signer(t, role, name) }
	return ticketvectors.Keys{
		Root: key(intents.RoleRoot, "root"), Router: key(intents.RoleRouter, "router"), Revoked: key(intents.RoleRouter, "revoked router"),
		Gateway: key(intents.RoleGateway, "gateway"), Manager: key(intents.RoleManager, "manager"), Task: key(intents.RoleTask, "task"),
		Operator: key(intents.RoleOperator, "operator"), Stranger: key(intents.RoleRouter, "stranger router"),
	}
}

var update = flag.Bool("update", false, "write testdata/vectors anew")

const (
	ticketFolder  = "testdata/vectors"
	ticketKeyFile = "testdata/keys.json"
)

// The vectors are made by package ticketvectors; docs/spec/envelope.md says what
// their members mean: go test ./executors -run TestTicketVectors -update.

// ticketFiles are all files that the generator makes, by path.
func ticketFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	add := func(path string, v any) {
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if files[path] != nil {
			t.Fatalf("%s is made twice", path)
		}
		files[path] = append(raw, '\n')
	}
	keys := fixedKeys(t)
	vectors, err := ticketvectors.Make(keys, ticketvectors.Target{
		Executor: "files", Types: []string{"read_lines", "write_temp"}, Args: json.RawMessage(`{"file_id":"f1","n":1,"start":0}`),
		Now: time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	add(ticketKeyFile, keys.JWKS())
	for _, v := range vectors {
		add(filepath.Join(ticketFolder, v.Name+".json"), v)
	}
	return files
}

func TestTicketVectorsAreCurrent(t *testing.T) {
	want := ticketFiles(t)
	for path, raw := range want {
		if *update {
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%s is not what the generator makes (%v): run with -update", path, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(ticketFolder, "*.json"))
	if err != nil || len(files) != len(want)-1 {
		t.Errorf("%d files, %d vectors, %v", len(files), len(want)-1, err)
	}
}

// TestTicketVectors: what an executor must not carry out is not carried out, and
// is reported with its code.
func TestTicketVectors(t *testing.T) {
	var set intents.JWKS
	readStrict(t, ticketKeyFile, &set)
	keys, err := set.Admit()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(ticketFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	failing := 0
	for _, path := range files {
		var v ticketvectors.Vector
		readStrict(t, path, &v)
		if v.Expect != intents.OK {
			failing++
		}
		t.Run(v.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a millisecond is left for some, however busy the machine is
				runVector(t, &v, set.Origin, keys)
			})
		})
	}
	if len(files) < 70 || failing*5 < len(files)*4 {
		t.Errorf("%d vectors, %d of them fail: want 70 or more, four in five failing", len(files), failing)
	}
}

func runVector(t *testing.T, v *ticketvectors.Vector, origin string, keys map[string]intents.Key) {
	t.Helper()
	now, err := time.Parse(time.RFC3339, v.Now)
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	handlers := map[string]executors.Handler{}
	for _, typ := range v.Types {
		handlers[typ] = func(context.Context, *executors.Intent) (*executors.Result, error) {
			ran = true
			return &executors.Result{Value: map[string]any{"lines": []string{}}}, nil
		}
	}
	known := intents.KeysFunc(func(kid string) (intents.Key, error) {
		k, ok := keys[kid]
		switch {
		case !ok:
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "no such key")
		case k.Revoked:
			return intents.Key{}, intents.Refuse(intents.KeyRevoked, "", "key is revoked")
		}
		return k, nil
	})
	s, err := executors.New(executors.Config{Name: v.Executor, Version: "1.0.0", RouterKeys: known, Origin: origin, Now: func() time.Time { return now }}, handlers)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := v.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var r intents.Report
	if err := json.Unmarshal(s.Handle(t.Context(), "", raw), &r); err != nil {
		t.Fatal(err)
	}
	if r.Code != v.Expect || ran != (v.Expect == intents.OK) || (r.Status == intents.Done) != ran {
		t.Errorf("%s %s: %s (carried out: %t), want %s", r.Status, r.Code, r.Reason, ran, v.Expect)
	}
}

func readStrict(t testing.TB, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
