package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
)

// get prints "HTTP <status> <content type>" and the body.
func get(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "get PATH")
	key := must[string](ts)(datadir.LocalKey(w.data))
	status, header, raw := request(ts, w, http.MethodGet, args[0], http.Header{"X-Api-Key": {key}}, nil)
	must[int](ts)(fmt.Fprintf(ts.Stdout(), "HTTP %d %s\n%s\n", status, header.Get("Content-Type"), raw))
}

// save writes the answer of a path to a file: save FILE PATH.
func save(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "save FILE PATH")
	var raw json.RawMessage
	fetch(ts, w, args[1], &raw)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), raw, 0o600))
}

// upload sends a file to a path and prints as get does: upload FILE PATH.
func upload(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "upload FILE PATH")
	key := must[string](ts)(datadir.LocalKey(w.data))
	header := http.Header{"X-Api-Key": {key}, "Content-Type": {"text/csv"}}
	status, got, raw := request(ts, w, http.MethodPost, args[1], header, []byte(ts.ReadFile(args[0])))
	must[int](ts)(fmt.Fprintf(ts.Stdout(), "HTTP %d %s\n%s\n", status, got.Get("Content-Type"), raw))
}

func request(ts *testscript.TestScript, w *world, method, path string, header http.Header, body []byte) (int, http.Header, []byte) {
	if w.up == nil {
		ts.Fatalf("it is not up")
	}
	if !strings.HasPrefix(path, "http://") { // of another listener
		path = w.url + path
	}
	req, err := http.NewRequest(method, path, bytes.NewReader(body))
	ts.Check(err)
	req.Header = header
	client := http.Client{Timeout: patience}
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return resp.StatusCode, resp.Header, raw
}

// fetch decodes the answer of a path.
func fetch(ts *testscript.TestScript, w *world, path string, out any) {
	status, _, raw := request(ts, w, http.MethodGet, path, nil, nil)
	if status != http.StatusOK {
		ts.Fatalf("%s: HTTP %d %s", path, status, raw)
	}
	ts.Check(json.Unmarshal(raw, out))
}

// checkCatalog: every type that is built is there, with both its schemas.
func checkCatalog(ts *testscript.TestScript, w *world, _ []string) {
	var doc struct {
		Intents []struct {
			Type   string         `json:"type"`
			Args   map[string]any `json:"args_schema"`
			Result map[string]any `json:"result_schema"`
			Signed []string       `json:"signed_by"`
		} `json:"intents"`
	}
	fetch(ts, w, "/v1/catalog", &doc)
	rows := catalog.Builtin().Rows()
	if len(rows) == 0 || len(doc.Intents) != len(rows) {
		ts.Fatalf("%d types, of %d in the catalog", len(doc.Intents), len(rows))
	}
	for i, row := range rows {
		got := doc.Intents[i]
		if got.Type != row.Type || got.Args["$id"] == nil || got.Result["$id"] == nil || len(got.Signed) != len(row.Signers) {
			ts.Fatalf("%s is served as %+v", row.Type, got)
		}
	}
}

// checkJWKS: the keys served are those of the data directory, but the root's,
// and nothing private.
func checkJWKS(ts *testscript.TestScript, w *world, _ []string) {
	var raw json.RawMessage
	fetch(ts, w, "/.well-known/jwks.json", &raw)
	var got intents.JWKS
	ts.Check(json.Unmarshal(raw, &got))
	keys := must[keydir.Keys](ts)(keydir.Load(w.data + "/keys"))
	if bytes.Contains(raw, []byte(`"d":`)) {
		ts.Fatalf("a private key is served: %s", raw)
	}
	byKID := cmpopts.SortSlices(func(a, b intents.JWK) bool { return a.KID < b.KID })
	if d := gocmp.Diff(keys.KeySet().Keys, got.Keys, byKID); d != "" {
		ts.Fatalf("JWKS (-want +got):\n%s", d)
	}
	if root := keys[intents.RoleRoot]; got.Origin != "writ/"+root.KID {
		ts.Fatalf("origin %s is not that of the root key %s", got.Origin, root.KID)
	}
}

// reader is the header of a read by the owner of the first API key, who oversees tenant default.
func reader(ts *testscript.TestScript, w *world) http.Header {
	return http.Header{"X-Api-Key": {must[string](ts)(datadir.LocalKey(w.data))}}
}

// accepted posts an intent that must be executed; its answer is printed.
func accepted(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "accepted FILE")
	status, _, raw := request(ts, w, http.MethodPost, "/v1/intents", nil, []byte(ts.ReadFile(args[0])))
	must[int](ts)(ts.Stdout().Write(raw))
	if status != http.StatusOK {
		ts.Fatalf("HTTP %d %s", status, raw)
	}
}

// refused posts an intent that must be refused with this code, as its problem,
// and that must not have been executed.
func refused(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "refused FILE CODE")
	code := codeNamed(ts, args[1])
	status, header, raw := request(ts, w, http.MethodPost, "/v1/intents", nil, []byte(ts.ReadFile(args[0])))
	var p struct {
		Type, Title, Detail, Hint string
		Status                    int
		Code                      intents.Code
		IntentID                  string `json:"intent_id"`
	}
	must[int](ts)(ts.Stdout().Write(raw))
	ts.Check(json.Unmarshal(raw, &p))
	info := code.Info()
	switch {
	case p.Code != code, status != info.Status, p.Status != info.Status:
		ts.Fatalf("HTTP %d %s, not %d %s: %s", status, p.Code, info.Status, code, raw)
	case header.Get("Content-Type") != "application/problem+json" || p.Type != "https://aob.dev/codes/"+string(code) || p.Title != info.Title:
		ts.Fatalf("not the problem of %s: %s %s", code, header.Get("Content-Type"), raw)
	case p.Detail == "" && len(info.Hint) > 0 && p.Hint == "":
		ts.Fatalf("it does not say what to do: %s", raw)
	}
	if p.IntentID == "" {
		return // it could not be read, so it has no name
	}
	status, _, raw = request(ts, w, http.MethodGet, "/v1/intents/"+p.IntentID, reader(ts, w), nil)
	var a intents.Answer
	ts.Check(json.Unmarshal(raw, &a))
	if status != http.StatusNotFound && (status != http.StatusOK || a.Outcome != nil || a.Receipt != "" || a.Code != code) {
		ts.Fatalf("after the refusal the router says HTTP %d %s", status, raw)
	}
}

// submit sends a signed intent with headers and prints the answer as get does:
// submit FILE [NAME VALUE]….
func submit(ts *testscript.TestScript, w *world, args []string) {
	if len(args)%2 != 1 {
		ts.Fatalf("usage: submit FILE [NAME VALUE]…")
	}
	header := http.Header{}
	for i := 1; i < len(args); i += 2 {
		header.Add(args[i], args[i+1])
	}
	status, got, raw := request(ts, w, http.MethodPost, "/v1/intents", header, []byte(ts.ReadFile(args[0])))
	must[int](ts)(fmt.Fprintf(ts.Stdout(), "HTTP %d %s\n%s\n%s\n", status, got.Get("Content-Type"), got.Get("Preference-Applied"), raw))
}

// followed opens the address of a log as a user of an API key would, and prints its lines
// until it ends: followed KEY ADDRESS.
func followed(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "followed KEY ADDRESS")
	err := client.Client{URL: w.url, Key: args[0]}.Stream(context.Background(), args[1], "", true, func(_ string, line json.RawMessage) error {
		_, err := fmt.Fprintf(ts.Stdout(), "%s\n", line)
		return err
	})
	if err != nil {
		must[int](ts)(fmt.Fprintf(ts.Stdout(), "refused: %v\n", err))
		return
	}
	must[int](ts)(fmt.Fprintln(ts.Stdout(), "ended"))
}

// replace writes a file with each OLD replaced: replace FROM TO OLD NEW….
func replace(ts *testscript.TestScript, _ *world, args []string) {
	if len(args) < 4 || len(args)%2 != 0 {
		ts.Fatalf("usage: replace FROM TO OLD NEW…")
	}
	text := strings.NewReplacer(args[2:]...).Replace(ts.ReadFile(args[0]))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
