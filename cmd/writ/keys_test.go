package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/keydir"
)

// inForce is the key set that the running writ serves.
func inForce(ts *testscript.TestScript, w *world) []intents.JWK {
	var set intents.JWKS
	fetch(ts, w, "/.well-known/jwks.json", &set)
	return set.Keys
}

// operate runs a command of an operator against the running writ and returns its output.
func operate(ts *testscript.TestScript, w *world, out any, args ...string) {
	cmd := exec.Command("writ", slices.Concat(args[:3], []string{"--url", w.url, "--data", w.data, "--json"}, args[3:])...)
	cmd.Dir, cmd.Env, cmd.Stderr = ts.MkAbs("."), environ(ts, w), ts.Stderr()
	raw, err := cmd.Output()
	ts.Check(err)
	ts.Check(json.Unmarshal(raw, out))
}

// rotate gives each role a new key, which must be in force when the command
// ends, beside the old one, which then has an end: rotate ROLE…; $KID_<role> is the new one.
func rotate(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "rotate ROLE…")
	for _, role := range args {
		var made struct{ KID, File string }
		operate(ts, w, &made, "admin", "keys", "rotate", role)
		ts.Setenv("KID_"+role, made.KID)
		var ends, open int
		for _, j := range inForce(ts, w) {
			if string(j.Role) != role {
				continue
			}
			if j.NotAfter == "" && j.KID == made.KID {
				open++
			} else if j.NotAfter != "" {
				ends++
			}
		}
		if ends != 1 || open != 1 {
			ts.Fatalf("%s: %d keys have an end and %d new ones have none", role, ends, open)
		}
	}
}

// revoke revokes the first key of each role: revoke ROLE….
func revoke(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "revoke ROLE…")
	first := must[keydir.Keys](ts)(keydir.Load(w.data + "/keys"))
	for _, role := range args {
		kid := first[intents.Role(role)].KID
		var done struct{ KID string }
		operate(ts, w, &done, "admin", "keys", "revoke", "--", kid[:12])
		if i := slices.IndexFunc(inForce(ts, w), func(j intents.JWK) bool { return j.KID == kid }); i < 0 || !inForce(ts, w)[i].Revoked || done.KID != kid {
			ts.Fatalf("the first key of %s is not revoked", role)
		}
	}
}

// signed checks that the last intent of each role in the record was signed by the
// key that rotate made: signed ROLE….
func signed(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "signed ROLE…")
	last := map[string]string{}
	cmd := exec.Command("writ", "audit", "tail", "--data", w.data, "--json")
	cmd.Dir, cmd.Env, cmd.Stderr = ts.MkAbs("."), environ(ts, w), ts.Stderr()
	raw, err := cmd.Output()
	ts.Check(err)
	for dec := json.NewDecoder(bytes.NewReader(raw)); dec.More(); {
		var s struct {
			Parts map[string]json.RawMessage `json:"parts"`
		}
		ts.Check(dec.Decode(&s))
		var inputs struct {
			Signer struct{ KID, Role string } `json:"signer"`
		}
		if s.Parts["facts"] != nil && json.Unmarshal(s.Parts["facts"], &inputs) == nil && inputs.Signer.Role != "" {
			last[inputs.Signer.Role] = inputs.Signer.KID
		}
	}
	for _, role := range args {
		if last[role] == "" || last[role] != ts.Getenv("KID_"+role) {
			ts.Fatalf("the last intent of %s was signed by %q, not by %q", role, last[role], ts.Getenv("KID_"+role))
		}
	}
}
