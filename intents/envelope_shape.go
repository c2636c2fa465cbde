package intents

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"aob.dev/writ/schemas"
)

// unsignedShape is schemas/envelope.schema.json without sig and transient, as Go: every envelope
// passes it, and only one that does not is given to the schema, which says why. TestBodyMutations
// holds both against each other.
var unsignedShape = func() shape {
	name, digest := matching(`^[A-Za-z0-9_.-]{1,64}$`), matching(`^sha256:[0-9a-f]{64}$`)
	call := matching(`^[1-9][0-9]{0,5}\.(0|[1-9][0-9]{0,2})$`)
	inRun := whole(1_000_000)
	return closed(map[string]shape{
		"version":  func(v any) bool { return v == Version },
		"trace_id": readable(128),
		"intent":   closed(map[string]shape{"type": name, "args": anyObject}, "type", "args"),
		"actor": closed(map[string]shape{
			"user_id": name, "tenant": name, "roles": distinct(64, name), "kid": matching(`^[A-Za-z0-9_-]{43}$`),
			"grant": all(length(0, 16384), matching(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)),
		}, "user_id", "tenant"),
		"constraints": closed(map[string]shape{
			"issued_at": issuedAt, "ttl_sec": whole(300), "audience": length(1, 256), "idempotency_key": readable(256),
			"capabilities": distinct(32, matching(`^[a-z0-9_.-]{1,64}:[a-z0-9_.-]{1,64}(:[A-Za-z0-9_.-]{1,64})?$`)),
		}, "issued_at", "ttl_sec", "audience", "idempotency_key"),
		"context": closed(map[string]shape{
			"session_id": name, "turn_id": name, "plan_id": name, "revision": inRun, "step": inRun, "task_id": name,
			"run_id": name, "node_id": name, "occurrence": inRun, "ask": call, "call": call, "tool": matching(`^[A-Za-z0-9_.-]{1,128}$`),
			"agent": closed(map[string]shape{"name": name, "digest": digest}, "name", "digest"), "cause": digest, "labels": labels(name),
		}),
	}, "version", "intent", "actor", "constraints")
}()

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

func all(shapes ...shape) shape {
	return func(v any) bool {
		for _, is := range shapes {
			if !is(v) {
				return false
			}
		}
		return true
	}
}

func matching(pattern string) shape {
	p := schemas.MustPattern(pattern)
	return func(v any) bool {
		s, ok := v.(string)
		return ok && p.MatchString(s)
	}
}

// length in characters.
func length(least, most int) shape {
	return func(v any) bool {
		s, ok := v.(string)
		n := len(s)
		if n > most {
			n = utf8.RuneCountInString(s)
		}
		return ok && least <= n && n <= most
	}
}

// readable is a text without control and invisible characters.
func readable(most int) shape {
	return all(length(1, most), func(v any) bool { return schemas.Visible().MatchString(v.(string)) }) //nolint:forcetypeassert // it has a length
}

// whole is a number from 1: canonical, so it is written in digits.
func whole(most int) shape {
	return func(v any) bool {
		n, ok := v.(json.Number)
		i, err := strconv.Atoi(string(n))
		return ok && err == nil && 1 <= i && i <= most
	}
}

// distinct is an array in which nothing stands twice.
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
				if before == x { // of strings, if item takes nothing else
					return false
				}
			}
		}
		return true
	}
}

func labels(name shape) shape {
	text := length(0, 256)
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for key, x := range object {
			if !name(key) || !text(x) {
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
