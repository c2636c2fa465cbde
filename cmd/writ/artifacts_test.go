package main

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage/ledger"
)

// anyone prints as get does, without a key or with one that is named:
//
//	anyone PATH [KEY]
func anyone(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "anyone PATH [KEY]")
	header := http.Header{}
	if len(args) > 1 {
		header.Set("X-Api-Key", args[1])
	}
	status, got, raw := request(ts, w, http.MethodGet, args[0], header, nil)
	must[int](ts)(fmt.Fprintf(ts.Stdout(), "HTTP %d %s\n%s\n", status, got.Get("Content-Type"), raw))
}

// linked takes the address out of the last answer, to artifact.get: linked NAME.
func linked(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 1, "linked NAME")
	var a intents.Answer
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &a))
	if a.Outcome == nil {
		ts.Fatalf("the answer has no outcome")
	}
	var got catalog.ArtifactGetResult
	ts.Check(json.Unmarshal(a.Outcome.Result, &got))
	ts.Setenv(args[0], got.URL)
}

// forge makes an address with the key of the data directory, which expires in so many seconds:
// forge NAME TENANT DIGEST SECONDS.
func forge(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 4, "forge NAME TENANT DIGEST SECONDS")
	secret := must[[]byte](ts)(ledger.ReadSecret(w.data + "/keys/tags"))
	key := must[[]byte](ts)(hkdf.Key(sha256.New, secret, nil, "writ artifact link key v1\n", sha256.Size))
	seconds := must[int](ts)(strconv.Atoi(args[3]))
	made := time.Now().Add(time.Duration(seconds)*time.Second - 15*time.Minute) // so long before its end
	link, _, err := gateway.Links{Key: key}.Link(intents.Principal{Tenant: args[1], UserID: "ana", Roles: []string{"user"}}, "test", "cas://"+args[2], made)
	ts.Check(err)
	ts.Setenv(args[0], link)
}
