package intents

import (
	"crypto"
	"strings"
)

// grantVectors are intents whose grant does not permit them.
func grantVectors(s *vectorSet) {
	with := func(change func(g *Grant)) func(o object) {
		return func(o object) { lookup(o, "actor")["grant"] = vectorGrant(change) }
	}
	now := vectorNow.Unix()
	for _, v := range []struct {
		name, doc string
		change    func(g *Grant)
		expect    Code
	}{
		{"ok-grant-leeway", "5 seconds after expiry", func(g *Grant) { g.Expires = now - 5 }, OK},
		{"grant-expired", "6 seconds after expiry", func(g *Grant) { g.Expires = now - 6 }, GrantInvalid},
		{"ok-grant-early", "5 seconds before issue", func(g *Grant) { g.IssuedAt, g.Expires = now+5, now+600 }, OK},
		{"grant-not-yet", "6 seconds before issue", func(g *Grant) { g.IssuedAt, g.Expires = now+6, now+600 }, GrantInvalid},
		{"ok-grant-life", "15 minutes", func(g *Grant) { g.Expires = g.IssuedAt + 900 }, OK},
		{"grant-long", "longer than 15 minutes", func(g *Grant) { g.Expires = g.IssuedAt + 901 }, GrantInvalid},
		{"ok-grant-short", "one second", func(g *Grant) { g.IssuedAt, g.Expires = now-1, now }, OK},
		{"grant-no-life", "ends when it begins", func(g *Grant) { g.IssuedAt, g.Expires = now, now }, GrantInvalid},
		{"grant-backwards", "ends before it begins", func(g *Grant) { g.Expires = g.IssuedAt - 1 }, GrantInvalid},
		{"grant-negative", "issued before 1970", func(g *Grant) { g.IssuedAt = -1 }, GrantInvalid},
		{"grant-overflow", "times that overflow", func(g *Grant) { g.IssuedAt, g.Expires = 9007199254740000, 9007199254740900 }, GrantInvalid},
		{"grant-audience", "for another log", func(g *Grant) { g.Audience = "writ/other" }, GrantInvalid},
		{"grant-issuer", "from another log", func(g *Grant) { g.Issuer = "writ/other" }, GrantInvalid},
		{"grant-both", "from another log for another log", func(g *Grant) { g.Issuer, g.Audience = "writ/other", "writ/other" }, GrantInvalid},
		{"grant-no-subject", "names nobody", func(g *Grant) { g.Subject = "" }, GrantInvalid},
		{"grant-no-tenant", "names no tenant", func(g *Grant) { g.Tenant = "" }, GrantInvalid},
		{"grant-no-id", "has no jti", func(g *Grant) { g.ID = "" }, GrantInvalid},
		{"grant-session", "for another session", func(g *Grant) { g.Session = "s2" }, GrantInvalid},
		{"grant-session-case", "for another session: case matters", func(g *Grant) { g.Session = "S" }, GrantInvalid},
		{"grant-no-session", "for no session", func(g *Grant) { g.Session = "" }, GrantInvalid},
		{"grant-turn", "for another turn", func(g *Grant) { g.Turn = "t2" }, GrantInvalid},
		{"grant-no-turn", "for no turn", func(g *Grant) { g.Turn = "" }, GrantInvalid},
		{"grant-other-user", "the actor is not whom the grant names", func(g *Grant) { g.Subject = "eve" }, RBACForbidden},
		{"grant-user-case", "the actor is not whom the grant names: case matters", func(g *Grant) { g.Subject = "Ana" }, RBACForbidden},
		{"grant-other-tenant", "the actor's tenant is not the grant's", func(g *Grant) { g.Tenant = "acme" }, RBACForbidden},
		{"grant-no-role", "the actor claims a role, the grant gives none", func(g *Grant) { g.Roles = []string{} }, RBACForbidden},
		{"grant-role-case", "the actor claims a role that the grant spells otherwise", func(g *Grant) { g.Roles = []string{"User"} }, RBACForbidden},
		{"grant-role-prefix", "a role is not a prefix", func(g *Grant) { g.Roles = []string{"users"} }, RBACForbidden},
		{"ok-standing-plan", "a standing grant for a plan, in an intent of that plan", func(g *Grant) { g.For = "plan:plan_1" }, OK},
		{"standing-other-plan", "a standing grant for another plan", func(g *Grant) { g.For = "plan:plan_2" }, GrantInvalid},
		{"standing-prefix", "a standing grant for a plan whose name begins alike", func(g *Grant) { g.For = "plan:plan_11" }, GrantInvalid},
		{"standing-any-plan", "a standing grant for a plan without name", func(g *Grant) { g.For = "plan:" }, GrantInvalid},
		{"standing-all", "a standing grant for everything", func(g *Grant) { g.For = "*" }, GrantInvalid},
		{"standing-case", "a standing grant for a plan, spelt otherwise", func(g *Grant) { g.For = "PLAN:plan_1" }, GrantInvalid},
		{"standing-bare", "a standing grant that does not say for what kind of work", func(g *Grant) { g.For = "plan_1" }, GrantInvalid},
		{"standing-run-of-plan", "a standing grant for a run that is named as the plan", func(g *Grant) { g.For = "run:plan_1" }, GrantInvalid},
		{"standing-schedule", "a standing grant for work that an intent cannot name", func(g *Grant) { g.For = "schedule:s1" }, GrantInvalid},
		{"read-use", "a grant for reading under an intent", func(g *Grant) { g.Use, g.Expires = UseRead, g.IssuedAt+300 }, GrantInvalid},
		{"read-use-standing", "a grant for reading that plan", func(g *Grant) { g.Use, g.For, g.Expires = UseRead, "plan:plan_1", g.IssuedAt+300 }, GrantInvalid},
		{"other-use", "a grant for another use", func(g *Grant) { g.Use = "intent" }, GrantInvalid},
		{"standing-long", "a standing grant is minted anew every 15 minutes too", func(g *Grant) { g.For, g.Expires = "plan:plan_1", g.IssuedAt+86400 }, GrantInvalid},
	} {
		s.body(v.name, v.doc, with(v.change), v.expect)
	}
	run := func(work string) func(o object) {
		return func(o object) {
			with(func(g *Grant) { g.For = work })(o)
			lookup(o, "context")["run_id"] = "run_1"
			delete(lookup(o, "context"), "plan_id")
		}
	}
	s.body("ok-standing-run", "a standing grant for a run, in an intent of that run", run("run:run_1"), OK)
	s.body("standing-other-run", "a standing grant for another run", run("run:run_2"), GrantInvalid)
	s.body("standing-plan-unnamed", "a standing grant for a plan, in an intent that names none", run("plan:plan_1"), GrantInvalid)
	s.body("standing-plan-of-run", "a standing grant for a plan that is named as the run", run("plan:run_1"), GrantInvalid)
	s.body("grant-missing", "only operators need none", drop("actor", "grant"), GrantInvalid)
	s.body("grant-context-missing", "an intent without context is of no session", drop("context"), GrantInvalid)
	s.body("grant-context-session", "an intent that names no session", drop("context", "session_id"), GrantInvalid)
	s.body("grant-context-turn", "an intent that names no turn", drop("context", "turn_id"), GrantInvalid)
	s.body("ok-grant-nowhere", "a grant and an intent of no session and turn", func(o object) {
		with(func(g *Grant) { g.Session, g.Turn = "", "" })(o)
		delete(o, "context")
	}, OK)
	s.body("grant-more-roles", "the actor claims a role that the grant does not give", put([]string{"user", "admin"}, "actor", "roles"), RBACForbidden)
}

// grantTokenVectors are intents whose grant is not a token of a gateway in force,
// or has another shape than a grant.
func grantTokenVectors(s *vectorSet) {
	good := vectorGrant(unchanged)
	head, rest, _ := strings.Cut(good, ".")
	payload, sig, _ := strings.Cut(rest, ".")
	_, evePayload, _ := strings.Cut(vectorGrant(func(g *Grant) { g.Subject = "eve" }), ".")
	evePayload, _, _ = strings.Cut(evePayload, ".")
	claims := object{}
	if err := UnmarshalStrict(mustDecode(payload), &claims); err != nil {
		panic(err)
	}
	legal := protectedHeader(TypGrant, vGateway.KID)
	// signed signs any claims under any header with the gateway's key.
	signed := func(header, text string) string {
		token := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(text))
		raw, err := vGateway.Key.Sign(nil, []byte(token), crypto.Hash(0))
		if err != nil {
			panic(err)
		}
		return token + "." + b64.EncodeToString(raw)
	}
	changed := func(change func(c object)) string {
		c := object{}
		for k, v := range claims {
			c[k] = v
		}
		change(c)
		return signed(legal, canonicalText(c))
	}
	set := func(name string, v any) string { return changed(func(c object) { c[name] = v }) }
	without := func(name string) string { return changed(func(c object) { delete(c, name) }) }
	text := string(mustDecode(payload))
	for _, v := range []struct{ name, doc, token string }{
		{"by-manager", "only gateways sign grants", grantBy(vManager, TypGrant, unchanged)},
		{"by-task", "a task cannot grant itself anything", grantBy(vTask, TypGrant, unchanged)},
		{"by-operator", "an operator cannot either", grantBy(vOperator, TypGrant, unchanged)},
		{"by-router", "a router cannot either", grantBy(vRouter, TypGrant, unchanged)},
		{"by-root", "the root cannot either", grantBy(vRoot, TypGrant, unchanged)},
		{"by-stranger", "signed by an unknown key", grantBy(vStranger, TypGrant, unchanged)},
		{"by-revoked", "signed by a revoked gateway", grantBy(vOldGateway, TypGrant, unchanged)},
		{"by-expired", "signed by a gateway's key past its not_after", grantBy(vEndGateway, TypGrant, unchanged)},
		{"other-paper", "a ticket is no grant", grantBy(vGateway, TypTicket, unchanged)},
		{"other-paper-intent", "an intent is no grant", grantBy(vGateway, TypIntent, unchanged)},
		{"payload-swapped", "claims of another grant under this signature", head + "." + evePayload + "." + sig},
		{"signature-plus-l", "S + L", head + "." + payload + "." + addL(sig)},
		{"signature-cut", "63 bytes", head + "." + payload + "." + sig[:84]},
		{"signature-trailing-bits", "one grant, one spelling: unused bits must be zero", head + "." + payload + "." + sig[:85] + nextDigit(sig[85])},
		{"payload-trailing-bits", "one grant, one spelling: unused bits must be zero", trailing(vectorGrant)},
		{"alg-none", "alg none", signed(replaced(legal, "EdDSA", "none"), text)},
		{"alg-hs256", "alg HS256", signed(replaced(legal, "EdDSA", "HS256"), text)},
		{"header-jwk", "no key of its own", signed(replaced(legal, `"kid"`, `"jwk":{},"kid"`), text)},
		{"header-crit", "no extensions", signed(replaced(legal, `"kid"`, `"crit":["b64"],"kid"`), text)},
		{"header-spaces", "one spelling: canonical", signed(replaced(legal, ",", ", "), text)},
		{"claims-spaces", "claims are canonical", signed(legal, replaced(text, ",", ", "))},
		{"claims-duplicate", "a claim stands twice", signed(legal, replaced(text, `"sub":"ana"`, `"sub":"ana","sub":"ana"`))},
		{"claims-array", "an object", signed(legal, "["+text+"]")},
		{"claims-null", "an object", signed(legal, "null")},
		{"claims-empty", "nothing is said", signed(legal, "{}")},
		{"claims-unknown", "claims are closed", set("admin", true)},
		{"claims-nbf", "claims are closed", set("nbf", 0)},
		{"claims-case", "names are exact: Sub is not sub", changed(func(c object) { c["Sub"] = c["sub"]; delete(c, "sub") })},
		{"claims-case-second", "names are exact: Roles beside roles", set("Roles", []string{"admin"})},
		{"act-unknown", "act is closed", set("act", object{"client": "api", "amr": []string{"key"}, "sub": "eve"})},
		{"act-case", "names are exact: Client is not client", set("act", object{"Client": "api", "amr": []string{"key"}})},
		{"act-string", "act is an object", set("act", "api")},
		{"amr-string", "amr is an array", set("act", object{"client": "api", "amr": "key"})},
		{"iss-missing", "iss is required", without("iss")},
		{"aud-missing", "aud is required", without("aud")},
		{"sub-missing", "sub is required", without("sub")},
		{"tenant-missing", "tenant is required", without("tenant")},
		{"iat-missing", "iat is required: from 1970 it would live too long", without("iat")},
		{"exp-missing", "exp is required", without("exp")},
		{"jti-missing", "jti is required", without("jti")},
		{"act-missing", "act is required", without("act")},
		{"act-client-missing", "so is its client", set("act", object{"amr": []string{"key"}})},
		{"act-amr-missing", "and its amr", set("act", object{"client": "api"})},
		{"roles-missing", "roles are required, also where there are none", without("roles")},
		{"session-missing", "a grant without session is for none", without("session_id")},
		{"turn-missing", "a grant without turn is for none", without("turn_id")},
		{"aud-array", "one log, not several", set("aud", []string{vectorOrigin})},
		{"sub-number", "a string", set("sub", 1)},
		{"sub-null", "a string", set("sub", nil)},
		{"iss-null", "a string", set("iss", nil)},
		{"tenant-null", "a string", set("tenant", nil)},
		{"iat-null", "a number", set("iat", nil)},
		{"act-null", "an object", set("act", nil)},
		{"for-null", "a string where it is there", set("for", nil)},
		{"session-null", "a string where it is there", set("session_id", nil)},
		{"roles-string", "an array", set("roles", "user")},
		{"roles-numbers", "of strings", set("roles", []int{1})},
		{"iat-fraction", "whole seconds", set("iat", float64(vectorNow.Unix())-0.5)},
		{"exp-string", "a number", set("exp", "1795168201")},
		{"exp-fraction", "whole seconds", set("exp", float64(vectorNow.Unix())+0.5)},
		{"for-number", "a string", set("for", 1)},
	} {
		s.body("grant-"+v.name, v.doc, put(v.token, "actor", "grant"), GrantInvalid)
	}
	s.body("grant-roles-null", "the actor claims a role; an empty list may be null", put(set("roles", nil), "actor", "grant"), RBACForbidden)
}

// trailing is a grant whose encoded payload has unused bits that are not zero.
func trailing(issue func(change func(g *Grant)) string) string {
	for id := "g"; ; id += "g" {
		token := issue(func(g *Grant) { g.ID = id })
		head, rest, _ := strings.Cut(token, ".")
		payload, sig, _ := strings.Cut(rest, ".")
		if last := len(payload) - 1; len(payload)%4 != 0 {
			return head + "." + payload[:last] + nextDigit(payload[last]) + "." + sig
		}
	}
}

// actorVectors are intents of operators, who need no grant.
func actorVectors(s *vectorSet) {
	operator := func(change func(o object)) object {
		return envelopeOf(func(o object) {
			o["actor"] = object{"user_id": "bob", "tenant": "default"}
			o["intent"] = object{"type": "intent.resolve", "args": object{}}
			delete(o, "context")
			change(o)
		})
	}
	for _, v := range []struct {
		name, doc string
		change    func(o object)
		expect    Code
	}{
		{"ok-operator", "an operator's intent carries no grant; its actor is the key's", func(object) {}, OK},
		{"ok-operator-context", "an operator's intent may name a session", put(object{"session_id": "s9"}, "context"), OK},
		{"operator-grant", "an operator's intent carries no grant", put(vectorGrant(func(g *Grant) { g.Subject = "bob" }), "actor", "grant"), GrantInvalid},
		{"operator-other-user", "the actor is not the key's subject", put("ana", "actor", "user_id"), RBACForbidden},
		{"operator-user-case", "the actor is not the key's subject: case matters", put("Bob", "actor", "user_id"), RBACForbidden},
		{"operator-other-tenant", "the actor's tenant is not the key's", put("acme", "actor", "tenant"), RBACForbidden},
		{"operator-system", "the actor's tenant is not the key's, least of all system", put("system", "actor", "tenant"), RBACForbidden},
	} {
		s.add(v.name, v.doc, signed(vOperator, operator(v.change)), v.expect)
	}
	s.add("operator-intent-by-manager", "an operator's intent, signed by another's key", signed(vManager, operator(func(object) {})), GrantInvalid)
}
