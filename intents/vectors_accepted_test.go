package intents

import (
	"strings"
	"time"
)

func acceptedVectors(s *vectorSet) {
	p := plainIntent()
	s.add("ok-full", "every member, canonical", p, OK)
	s.add("ok-white-space", "white space is free: the canonical bytes are signed", strings.ReplaceAll(p, `,"`, ",\n  \""), OK)
	s.add("ok-white-space-kinds", "space, tab, line feed and carriage return", "\r\n\t "+p+" \t\n\r", OK)
	s.add("ok-member-order", "members in any order", `{"version":"1.0",`+replaced(p[1:], `,"version":"1.0"`, ""), OK)
	s.add("ok-escapes", "any spelling of a string is the same string", replaced(p, "ä", `\u00e4`), OK)
	s.add("ok-escapes-upper", "hexadecimal in upper case", replaced(p, "ä", `\u00E4`), OK)
	s.add("ok-escapes-name", "a name may be escaped too", replaced(p, `"trace_id"`, `"trace\u005fid"`), OK)
	s.add("ok-escapes-sig", "the JWS as a string is a string like any other", replaced(p, "..", `.\u002e`), OK)
	s.body("ok-minimal", "without the optional members", func(o object) {
		delete(o, "trace_id")
		o["context"] = object{"session_id": "s", "turn_id": "t"}
		delete(lookup(o, "actor"), "roles")
		delete(lookup(o, "constraints"), "capabilities")
	}, OK)
	s.add("ok-transient", "a text beside sig is not signed, its digest is", besideSig(vectorText("Ana")), OK)
	s.body("ok-args-empty", "args may be empty here: the type's schema says more", put(object{}, "intent", "args"), OK)
	s.body("ok-args-sig", "a member sig within args is an argument", put(object{"sig": "x", "n": nil}, "intent", "args"), OK)
	s.body("ok-surrogate-order", "members sort by UTF-16 code units: U+1F600 before U+FB33",
		put(object{"\U0001F600": 1, "\uFB33": 2, "a": 3}, "intent", "args"), OK)
	s.body("ok-prefix-order", "a shorter name stands before a longer one", put(object{"a": 1, "aa": 2, "": 3}, "intent", "args"), OK)
	s.body("ok-strings", "controls, quotes, separators, DEL and a character beyond the BMP",
		put(object{"s": "\x00\b\t\n\f\r\x1f\"\\/<>&\x7f\u2028\u2029\U0001F600\ufeff"}, "intent", "args"), OK)
	s.body("ok-noncharacter", "RFC 7493 advises against U+FFFF; it has one spelling and is let through", put(object{"s": "\uffff"}, "intent", "args"), OK)
	s.body("ok-names-differ-in-case", "a and A are two names within args", put(object{"a": 1, "A": 2}, "intent", "args"), OK)
	s.body("ok-not-normalized", "é as one character and as two are two names", put(object{"\u00e9": 1, "e\u0301": 2}, "intent", "args"), OK)
	s.body("ok-signed-by-manager", "a manager's key", func(object) {}, OK).signWith(vManager)
	s.body("ok-signed-by-gateway", "a gateway's key: who may sign which type is asked later", func(object) {}, OK).signWith(vGateway)
	s.body("ok-key-last-moment", "not_after is the last moment of a key", func(object) {}, OK).signWith(vLast)

	issued := func(after time.Duration) func(o object) {
		return put(FormatTime(vectorNow.Add(after)), "constraints", "issued_at")
	}
	s.body("ok-issued-leeway", "issued 5 seconds ahead of the clock", issued(Leeway), OK)
	s.body("fresh-not-yet", "issued 5.001 seconds ahead of the clock", issued(Leeway+time.Millisecond), NotYetValid)
	s.body("ok-ttl-leeway", "5 seconds after issued_at + ttl_sec", issued(-125*time.Second), OK)
	s.body("fresh-expired", "5.001 seconds after issued_at + ttl_sec", issued(-125*time.Second-time.Millisecond), ExpiredTTL)
	s.body("fresh-leap-day", "29 February 2000 was a day; it is long ago", put("2000-02-29T00:00:00.000Z", "constraints", "issued_at"), ExpiredTTL)
	s.body("fresh-last-year", "the year 9999 is far ahead", put("9999-12-31T23:59:59.999Z", "constraints", "issued_at"), NotYetValid)
}

// signWith signs the vector's envelope with another key.
func (v *vector) signWith(key Signer) {
	v.Intent = []byte(signed(key, envelopeOf(func(object) {})))
	u, err := Parse(v.Intent)
	if err != nil {
		panic(err)
	}
	v.IntentID = u.ID()
}
