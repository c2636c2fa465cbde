package intents

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// plainEnvelope reports whether the value of a canonical document surely matches
// schemas/envelope.schema.json without sig and transient, as nearly every envelope does. The schema
// decides about all others: texts outside ASCII among them. TestBodyMutations holds the two
// against each other.
var plainEnvelope = func() shape {
	const small, digits = "abcdefghijklmnopqrstuvwxyz", "0123456789"
	const alphanumeric = small + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	name, base64url := spelt(alphanumeric+"_.-", 1, 64), letters(alphanumeric+"_-")
	digest, call := text(IsDigest), text(regexp.MustCompile(`^[1-9][0-9]{0,5}\.(0|[1-9][0-9]{0,2})$`).MatchString)
	capability := text(regexp.MustCompile(`^[a-z0-9_.-]{1,64}:[a-z0-9_.-]{1,64}(:[A-Za-z0-9_.-]{1,64})?$`).MatchString)
	grant := text(func(s string) bool {
		header, rest, _ := strings.Cut(s, ".")
		payload, sig, _ := strings.Cut(rest, ".")
		const most = 16384
		return len(s) <= most && base64url.spell(header, 1, most) && base64url.spell(payload, 1, most) && base64url.spell(sig, 1, most)
	})
	inRun := whole(1_000_000)
	return closed(map[string]shape{
		"version":  func(v any) bool { return v == Version },
		"trace_id": printable(1, 128),
		"intent":   closed(map[string]shape{"type": name, "args": anyObject}, "type", "args"),
		"actor": closed(map[string]shape{
			"user_id": name, "tenant": name, "roles": distinct(64, name), "kid": spelt(alphanumeric+"_-", 43, 43), "grant": grant,
		}, "user_id", "tenant"),
		"constraints": closed(map[string]shape{
			"issued_at": issuedAt, "ttl_sec": whole(300), "audience": printable(1, 256), "idempotency_key": printable(1, 256),
			"capabilities": distinct(32, capability),
		}, "issued_at", "ttl_sec", "audience", "idempotency_key"),
		"context": closed(map[string]shape{
			"session_id": name, "turn_id": name, "plan_id": name, "revision": inRun, "step": inRun, "task_id": name,
			"run_id": name, "node_id": name, "occurrence": inRun, "ask": call, "call": call, "tool": spelt(alphanumeric+"_.-", 1, 128),
			"agent": closed(map[string]shape{"name": name, "digest": digest}, "name", "digest"), "cause": digest, "labels": labels(name),
		}),
	}, "version", "intent", "actor", "constraints")
}()

// alphabet is a set of characters of ASCII.
type alphabet [256]bool

func letters(all string) *alphabet {
	var a alphabet
	for i := range len(all) {
		a[all[i]] = true
	}
	return &a
}

// spell reports whether s has least to most characters, all of the alphabet.
func (a *alphabet) spell(s string, least, most int) bool {
	for i := range len(s) {
		if !a[s[i]] {
			return false
		}
	}
	return least <= len(s) && len(s) <= most
}

// shape reports whether a value of a canonical document is what it should be.
type shape func(v any) bool

// closed is an object of these members and no others.
func closed(members map[string]shape, required ...string) shape {
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for name, x := range object {
			if is := members[name]; is == nil || !is(x) {
				return false
			}
		}
		for _, name := range required {
			if _, there := object[name]; !there {
				return false
			}
		}
		return ok
	}
}

func anyObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func text(is func(string) bool) shape {
	return func(v any) bool {
		s, ok := v.(string)
		return ok && is(s)
	}
}

func spelt(all string, least, most int) shape {
	a := letters(all)
	return text(func(s string) bool { return a.spell(s, least, most) })
}

// printable is a text of the visible characters of ASCII and spaces.
func printable(least, most int) shape {
	var a alphabet
	for c := ' '; c <= '~'; c++ {
		a[c] = true
	}
	return text(func(s string) bool { return a.spell(s, least, most) })
}

// whole is a number from 1: canonical, so it is written in digits.
func whole(most int) shape {
	return func(v any) bool {
		n, ok := v.(json.Number)
		i, err := strconv.Atoi(string(n))
		return ok && err == nil && 1 <= i && i <= most
	}
}

// distinct is an array of texts of which none stands twice.
func distinct(most int, item shape) shape {
	return func(v any) bool {
		list, ok := v.([]any)
		if !ok || len(list) > most {
			return false
		}
		for i, x := range list {
			if !item(x) {
				return false
			}
			for _, before := range list[:i] {
				if before == x {
					return false
				}
			}
		}
		return true
	}
}

func labels(name shape) shape {
	value := printable(0, 256)
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for key, x := range object {
			if !name(key) || !value(x) {
				return false
			}
		}
		return ok && len(object) <= 32
	}
}

// issuedAt is a time as FormatTime writes it.
func issuedAt(v any) bool {
	s, ok := v.(string)
	t, err := time.Parse(timeFormat, s)
	return ok && err == nil && FormatTime(t) == s
}
