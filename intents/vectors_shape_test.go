package intents

import (
	"fmt"
	"strings"
)

// besideSig is a plan.open that signs the digest of a user's name, with a member transient.
func besideSig(transient any) string {
	raw, err := marshalCanonical(transient)
	if err != nil {
		panic(err)
	}
	name := TransientText{Salt: make([]byte, 32), Text: "Ana"}
	args := object{"plan_id": "plan_1", "task": "x", "transient": object{"user_name": name.Digest()}}
	return replaced(signed(vTask, envelopeOf(put(object{"type": "plan.open", "args": args}, "intent"))), `,"version":`, `,"transient":`+string(raw)+`,"version":`)
}

func vectorText(text string) object {
	return object{"user_name": object{"salt": strings.Repeat("A", 43) + "=", "text": text}}
}

// shapeVectors are signed envelopes that do not match schemas/envelope.schema.json.
func shapeVectors(s *vectorSet) {
	for _, v := range []struct {
		name, doc string
		transient any
	}{
		{"transient-null", "absent or an object", nil},
		{"transient-empty", "absent or with a text", object{}},
		{"transient-other-name", "texts of three names alone", object{"note": vectorText("x")["user_name"]}},
		{"transient-without-salt", "each has its salt", object{"user_name": object{"text": "Ana"}}},
		{"transient-short-salt", "of 32 bytes", object{"user_name": object{"salt": "AAAA", "text": "Ana"}}},
		{"transient-loose-salt", "in its one spelling", object{"user_name": object{"salt": strings.Repeat("A", 42) + "B=", "text": "Ana"}}},
		{"transient-text-empty", "a text has a character", vectorText("")},
		{"transient-text-long", "a name has at most 256 characters", vectorText(strings.Repeat("é", 257))},
	} {
		s.add(v.name, v.doc, besideSig(v.transient), SchemaInvalid)
	}
	for _, v := range []struct {
		name, doc string
		change    func(o object)
	}{
		{"version", "an unknown version", put("1.1", "version")},
		{"version-missing", "version is required", drop("version")},
		{"version-number", "a string", put(1, "version")},
		{"version-blank", "exactly 1.0", put("1.0 ", "version")},
		{"unknown-member", "the envelope is closed", put("x", "note")},
		{"unknown-member-case", "names are exact: Version is not version", put("1.0", "Version")},
		{"unknown-member-empty", "the envelope is closed, to the empty name too", put(1, "")},
		{"member-case-only", "names are exact: Trace_id is not trace_id", func(o object) { o["Trace_id"] = o["trace_id"]; delete(o, "trace_id") }},
		{"unknown-intent-member", "intent is closed", put(1, "intent", "version")},
		{"unknown-context-member", "context is closed", put("x", "context", "user")},
		{"unknown-actor-member", "actor is closed", put(true, "actor", "admin")},
		{"unknown-actor-case", "names are exact: Tenant is not tenant", put("acme", "actor", "Tenant")},
		{"unknown-constraint", "constraints are closed", put(1, "constraints", "nbf")},
		{"intent-missing", "intent is required", drop("intent")},
		{"intent-null", "an object", put(nil, "intent")},
		{"intent-string", "an object", put("skill.call", "intent")},
		{"args-missing", "args is required", drop("intent", "args")},
		{"args-array", "args is an object", put([]int{}, "intent", "args")},
		{"args-null", "args is an object", put(nil, "intent", "args")},
		{"args-string", "args is an object", put("{}", "intent", "args")},
		{"type-missing", "type is required", drop("intent", "type")},
		{"type-blank", "a type is an identifier", put("skill call", "intent", "type")},
		{"type-empty", "a type is an identifier", put("", "intent", "type")},
		{"type-slash", "a type is an identifier", put("skill/call", "intent", "type")},
		{"type-wildcard", "a type is an identifier", put("skill.*", "intent", "type")},
		{"type-array", "a string", put([]string{"skill.call"}, "intent", "type")},
		{"actor-missing", "actor is required", drop("actor")},
		{"actor-null", "an object", put(nil, "actor")},
		{"user-missing", "user_id is required", drop("actor", "user_id")},
		{"user-empty", "identifiers have a character", put("", "actor", "user_id")},
		{"user-email", "identifiers have no @", put("ana@example.org", "actor", "user_id")},
		{"user-number", "a string", put(1, "actor", "user_id")},
		{"user-homoglyph", "ASCII only: a Cyrillic а", put("\u0430na", "actor", "user_id")},
		{"tenant-missing", "tenant is required", drop("actor", "tenant")},
		{"tenant-newline", "no line break hides at the end", put("default\n", "actor", "tenant")},
		{"tenant-slash", "identifiers have no /", put("default/ana", "actor", "tenant")},
		{"tenant-null", "a string", put(nil, "actor", "tenant")},
		{"roles-string", "roles is an array", put("user", "actor", "roles")},
		{"roles-null", "roles is an array", put(nil, "actor", "roles")},
		{"roles-number", "of strings", put([]any{"user", 1}, "actor", "roles")},
		{"roles-twice", "no two alike", put([]string{"user", "user"}, "actor", "roles")},
		{"roles-empty-name", "of identifiers", put([]string{""}, "actor", "roles")},
		{"roles-wildcard", "of identifiers", put([]string{"*"}, "actor", "roles")},
		{"grant-not-jws", "a grant is a compact JWS", put("letmein", "actor", "grant")},
		{"grant-null", "a string", put(nil, "actor", "grant")},
		{"grant-empty", "absent or a compact JWS", put("", "actor", "grant")},
		{"grant-object", "no JSON serialization of a JWS", put(object{"payload": "e30", "protected": "e30", "signature": "AA"}, "actor", "grant")},
		{"grant-detached", "a grant has its payload within", put("e30..AA", "actor", "grant")},
		{"grant-four-parts", "three parts", put("e30.e30.AA.AA", "actor", "grant")},
		{"grant-padded", "base64url without padding", put("e30=.e30.AA", "actor", "grant")},
		{"grant-line-break", "no line breaks", put("e30.e30.AA\n", "actor", "grant")},
		{"constraints-missing", "constraints are required", drop("constraints")},
		{"constraints-array", "an object", put([]int{}, "constraints")},
		{"ttl-missing", "ttl_sec is required", drop("constraints", "ttl_sec")},
		{"ttl-negative", "at least one second", put(-1, "constraints", "ttl_sec")},
		{"ttl-fraction", "whole seconds", put(1.5, "constraints", "ttl_sec")},
		{"ttl-string", "a number", put("120", "constraints", "ttl_sec")},
		{"ttl-null", "a number", put(nil, "constraints", "ttl_sec")},
		{"ttl-huge", "at most 300 seconds", put(1e300, "constraints", "ttl_sec")},
		{"audience-missing", "audience is required", drop("constraints", "audience")},
		{"audience-empty", "an intent is for one log", put("", "constraints", "audience")},
		{"audience-array", "one log, not several", put([]string{vectorOrigin}, "constraints", "audience")},
		{"key-missing", "idempotency_key is required", drop("constraints", "idempotency_key")},
		{"key-empty", "a key has a character", put("", "constraints", "idempotency_key")},
		{"key-number", "a string", put(1, "constraints", "idempotency_key")},
		{"key-null", "a string", put(nil, "constraints", "idempotency_key")},
		{"key-control", "no control character", put("a\x00b", "constraints", "idempotency_key")},
		{"key-line-break", "no line break hides at the end", put("a\n", "constraints", "idempotency_key")},
		{"key-invisible", "no invisible character: a zero-width space", put("a\u200bb", "constraints", "idempotency_key")},
		{"key-blank-other", "the plain space is the only blank", put("a\u00a0b", "constraints", "idempotency_key")},
		{"capabilities-string", "an array", put("skills:call", "constraints", "capabilities")},
		{"capabilities-twice", "no two alike", put([]string{"skills:call", "skills:call"}, "constraints", "capabilities")},
		{"capabilities-null", "an array", put(nil, "constraints", "capabilities")},
		{"context-null", "absent or an object", put(nil, "context")},
		{"context-array", "absent or an object", put([]int{}, "context")},
		{"cause-form", "cause is an intent_id", put("step 1", "context", "cause")},
		{"cause-upper", "lower-case hexadecimal", put("sha256:"+strings.Repeat("0A", 32), "context", "cause")},
		{"labels-number", "labels are strings", put(object{"team": 1}, "context", "labels")},
		{"labels-null", "labels are strings", put(object{"team": nil}, "context", "labels")},
		{"labels-nested", "labels are strings", put(object{"team": object{}}, "context", "labels")},
		{"labels-array", "an object", put([]string{"team"}, "context", "labels")},
		{"labels-name-blank", "a label's name is an identifier", put(object{"my team": "x"}, "context", "labels")},
		{"labels-name-empty", "a label's name is an identifier", put(object{"": "x"}, "context", "labels")},
		{"agent-string", "an object", put("ranker", "context", "agent")},
		{"agent-no-name", "name is required", put(object{"digest": Digest(nil)}, "context", "agent")},
		{"agent-no-digest", "digest is required", put(object{"name": "ranker"}, "context", "agent")},
		{"agent-member", "agent is closed", put(object{"name": "ranker", "digest": Digest(nil), "model": "x"}, "context", "agent")},
		{"agent-digest-form", "a digest", put(object{"name": "ranker", "digest": "1"}, "context", "agent")},
		{"trace-empty", "absent, or one character at least", put("", "trace_id")},
		{"trace-null", "absent or a string", put(nil, "trace_id")},
		{"trace-number", "a string", put(1, "trace_id")},
		{"trace-control", "no control character", put("a\x1b[2Jb", "trace_id")},
		{"trace-delete", "DEL and what follows are control characters", put("a\u0085b", "trace_id")},
		{"trace-tab", "no tab", put("a\tb", "trace_id")},
		{"trace-direction", "no mark of direction", put("a\u202eb", "trace_id")},
		{"trace-separator", "no line separator", put("a\u2028b", "trace_id")},
		{"trace-byte-order-mark", "no byte order mark", put("\ufeffa", "trace_id")},
		{"trace-tag", "no invisible character beyond the BMP", put("a\U000e0041", "trace_id")},
	} {
		s.body("shape-"+v.name, v.doc, v.change, SchemaInvalid)
	}
	issuedVectors(s)
}

func issuedVectors(s *vectorSet) {
	for _, v := range []struct{ name, doc, at string }{
		{"no-milliseconds", "one spelling of time: with milliseconds", "2026-11-20T10:00:00Z"},
		{"two-digits", "three digits of milliseconds", "2026-11-20T10:00:00.00Z"},
		{"microseconds", "three digits of milliseconds", "2026-11-20T10:00:00.000000Z"},
		{"comma", "a point before the milliseconds", "2026-11-20T10:00:00,000Z"},
		{"offset", "one spelling of time: UTC as Z", "2026-11-20T11:00:00.000+01:00"},
		{"offset-zero", "one spelling of time: UTC as Z", "2026-11-20T10:00:00.000+00:00"},
		{"no-zone", "one spelling of time: UTC as Z", "2026-11-20T10:00:00.000"},
		{"lower-case", "T and Z are upper case", "2026-11-20t10:00:00.000z"},
		{"blank", "T, no blank", "2026-11-20 10:00:00.000Z"},
		{"line-break", "no line break hides at the end", "2026-11-20T10:00:00.000Z\n"},
		{"no-such-day", "30 February", "2026-02-30T10:00:00.000Z"},
		{"no-leap-year", "29 February of a year that has none", "2026-02-29T10:00:00.000Z"},
		{"no-leap-century", "1900 was no leap year", "1900-02-29T10:00:00.000Z"},
		{"april-31", "31 April", "2026-04-31T10:00:00.000Z"},
		{"day-zero", "days count from 1", "2026-11-00T10:00:00.000Z"},
		{"month-zero", "months count from 1", "2026-00-20T10:00:00.000Z"},
		{"month-13", "twelve months", "2026-13-20T10:00:00.000Z"},
		{"hour-24", "hours end at 23", "2026-11-20T24:00:00.000Z"},
		{"minute-60", "minutes end at 59", "2026-11-20T10:60:00.000Z"},
		{"leap-second", "no leap seconds", "2026-12-31T23:59:60.000Z"},
		{"five-digits", "four digits of the year", "12026-11-20T10:00:00.000Z"},
		{"week", "no week dates", "2026-W47-5T10:00:00.000Z"},
		{"empty", "a time", ""},
	} {
		s.body("issued-"+v.name, v.doc, put(v.at, "constraints", "issued_at"), SchemaInvalid)
	}
	s.body("issued-number", "a string", put(vectorNow.UnixMilli(), "constraints", "issued_at"), SchemaInvalid)
	s.body("issued-missing", "issued_at is required", drop("constraints", "issued_at"), SchemaInvalid)
}

// boundVectors are at each bound of the schema, and one past it.
func boundVectors(s *vectorSet) {
	long := func(n int) string { return strings.Repeat("a", n) }
	many := func(n int, of string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf(of, i)
		}
		return out
	}
	granted := func(change func(o object), grant func(g *Grant)) func(o object) {
		return func(o object) {
			change(o)
			lookup(o, "actor")["grant"] = vectorGrant(grant)
		}
	}
	both := func(name, doc string, good, past func(o object)) {
		s.body("ok-bound-"+name, doc, good, OK)
		s.body("bound-"+name, "one past: "+doc, past, SchemaInvalid)
	}
	user := granted(put(long(64), "actor", "user_id"), func(g *Grant) { g.Subject = long(64) })
	both("user", "64 characters", user, put(long(65), "actor", "user_id"))
	both("tenant", "64 characters", granted(put(long(64), "actor", "tenant"), func(g *Grant) { g.Tenant = long(64) }), put(long(65), "actor", "tenant"))
	both("type", "64 characters", put(long(64), "intent", "type"), put(long(65), "intent", "type"))
	both("role", "64 characters", granted(put([]string{long(64)}, "actor", "roles"), func(g *Grant) { g.Roles = []string{long(64)} }), put([]string{long(65)}, "actor", "roles"))
	both("roles", "64 roles", granted(put(many(64, "r%d"), "actor", "roles"), func(g *Grant) { g.Roles = many(64, "r%d") }), put(many(65, "r%d"), "actor", "roles"))
	s.body("ok-bound-roles-none", "no role is claimed", put([]string{}, "actor", "roles"), OK)
	both("ttl-least", "one second", func(o object) {
		put(1, "constraints", "ttl_sec")(o)
		put(FormatTime(vectorNow), "constraints", "issued_at")(o)
	}, put(0, "constraints", "ttl_sec"))
	both("ttl-most", "300 seconds", put(300, "constraints", "ttl_sec"), put(301, "constraints", "ttl_sec"))
	both("key", "256 characters beyond the BMP", put(strings.Repeat("\U0001F600", 256), "constraints", "idempotency_key"), put(strings.Repeat("\U0001F600", 257), "constraints", "idempotency_key"))
	s.body("ok-key-formula", "a key is any text: the formula that it was made by", put("sha256(run_id|args)", "constraints", "idempotency_key"), OK)
	s.body("ok-key-unicode", "a key is any text, quotes, slashes and wildcards included", put(`7f3e… "a\b"/../* > $1'; <b>`, "constraints", "idempotency_key"), OK)
	both("capabilities", "32 capabilities", put(many(32, "skills:call:s%d"), "constraints", "capabilities"), put(many(33, "skills:call:s%d"), "constraints", "capabilities"))
	capability := func(c string) func(o object) { return put([]string{c}, "constraints", "capabilities") }
	both("capability-area", "64 characters", capability(long(64)+":call"), capability(long(65)+":call"))
	both("capability-verb", "64 characters", capability("skills:"+long(64)), capability("skills:"+long(65)))
	both("capability-resource", "64 characters", capability("skills:call:"+strings.ToUpper(long(64))), capability("skills:call:"+long(65)))
	both("capability-parts", "three parts", capability("a:b:c"), capability("a:b:c:d"))
	for name, c := range map[string]string{"one-part": "skills", "no-area": ":call", "no-verb": "skills:", "no-resource": "skills:call:", "upper-case": "Skills:call", "wildcard": "skills:*"} {
		s.body("capability-"+name, "area:verb[:resource]", capability(c), SchemaInvalid)
	}
	// No log has an origin of 256 characters here: at the bound it is another log.
	s.body("bound-audience-most", "256 characters, of another log", put(strings.Repeat("ä", 256), "constraints", "audience"), SignatureInvalid)
	s.body("bound-audience", "257 characters", put(strings.Repeat("ä", 257), "constraints", "audience"), SchemaInvalid)
	both("trace", "128 characters beyond the BMP", put(strings.Repeat("\U0001F600", 128), "trace_id"), put(strings.Repeat("\U0001F600", 129), "trace_id"))
	s.body("ok-trace-short", "a trace is any text", put("abcd-1234", "trace_id"), OK)
	s.body("ok-trace-unicode", "a trace is any text, quotes, slashes and wildcards included", put(`7f3e… "a\b"/../* > $1'; <b>`, "trace_id"), OK)
	contextVectors(s, both, long)
	granting := func(n int) func(o object) {
		return func(o object) { lookup(o, "actor")["grant"] = grantOfLength(n) }
	}
	both("grant", "a grant of 16384 characters", granting(16384), granting(16386))
}

// grantOfLength pads the client's name; not every length can be had in base64.
func grantOfLength(n int) string {
	for pad := (n - 900) * 3 / 4; ; pad++ {
		token := vectorGrant(func(g *Grant) { g.Act.Client = strings.Repeat("c", pad) })
		switch {
		case len(token) == n:
			return token
		case len(token) > n:
			panic(fmt.Sprintf("no grant of %d characters", n))
		}
	}
}

func contextVectors(s *vectorSet, both func(name, doc string, good, past func(o object)), long func(n int) string) {
	in := func(v any, member string) func(o object) { return put(v, "context", member) }
	for _, member := range []string{"plan_id", "task_id", "run_id", "node_id"} {
		both("context-"+member, "64 characters", in(long(64), member), in(long(65), member))
		s.body("context-"+member+"-empty", "absent or an identifier", in("", member), SchemaInvalid)
	}
	for member, grant := range map[string]func(g *Grant){
		"session_id": func(g *Grant) { g.Session = long(64) }, "turn_id": func(g *Grant) { g.Turn = long(64) },
	} {
		both("context-"+member, "64 characters", func(o object) {
			in(long(64), member)(o)
			lookup(o, "actor")["grant"] = vectorGrant(grant)
		}, in(long(65), member))
	}
	for _, member := range []string{"revision", "step", "occurrence"} {
		both("context-"+member+"-least", "from 1", in(1, member), in(0, member))
		both("context-"+member+"-most", "to 1000000", in(1_000_000, member), in(1_000_001, member))
		s.body("context-"+member+"-string", "a number", in("1", member), SchemaInvalid)
		s.body("context-"+member+"-fraction", "a whole number", in(1.5, member), SchemaInvalid)
	}
	for _, member := range []string{"ask", "call"} {
		both("context-"+member, "two numbers, the first from 1", in("999999.999", member), in("0.0", member))
		s.body("context-"+member+"-one", "a reply and an index", in("1", member), SchemaInvalid)
		s.body("context-"+member+"-zeros", "without zeros in front", in("1.00", member), SchemaInvalid)
		s.body("context-"+member+"-number", "a string", in(1, member), SchemaInvalid)
	}
	both("context-cause", "64 digits", in(Digest(nil), "cause"), in(Digest(nil)+"0", "cause"))
	both("context-agent", "64 characters", in(object{"name": long(64), "digest": Digest(nil)}, "agent"), in(object{"name": long(65), "digest": Digest(nil)}, "agent"))
	labels := func(n int) object {
		out := object{}
		for i := range n {
			out[fmt.Sprintf("l%d", i)] = ""
		}
		return out
	}
	both("labels", "32 labels", in(labels(32), "labels"), in(labels(33), "labels"))
	s.body("ok-bound-labels-none", "no label", in(object{}, "labels"), OK)
	both("label-name", "64 characters", in(object{long(64): "x"}, "labels"), in(object{long(65): "x"}, "labels"))
	both("label", "256 characters", in(object{"l": long(256)}, "labels"), in(object{"l": long(257)}, "labels"))
	both("label-astral", "256 characters beyond the BMP: code points count, not UTF-16 units", in(object{"l": strings.Repeat("\U0001F600", 256)}, "labels"), in(object{"l": strings.Repeat("\U0001F600", 257)}, "labels"))
}
