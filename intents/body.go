package intents

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/schemas"
)

// ReadBody takes a canonical payload apart and holds it to
// schemas/envelope.schema.json. Its strings are parts of one copy of the payload,
// and its arguments are a part of the payload itself.
func ReadBody(payload []byte) (Body, error) {
	if b, ok := readPlainBody(payload); ok {
		return b, nil
	}
	return readBodySlowly(payload)
}

// readBodySlowly is what ReadBody means: the schema, then the decoder.
func readBodySlowly(payload []byte) (b Body, err error) {
	if v := schemas.Unsigned().ValidateBytes(payload); len(v) > 0 {
		return b, Invalid(SchemaInvalid, "", v)
	}
	if err := json.Unmarshal(payload, &b); err != nil {
		return b, Refuse(SchemaInvalid, "", "order does not match the envelope")
	}
	return b, nil
}

// readPlainBody reads, in one pass, the payloads that nearly all senders send.
// It decides nothing: what it takes, the schema would take and the decoder would
// read the same, and of all else it only says that it is not plain. Strings are
// parts of one copy of the payload; args alias it.
func readPlainBody(payload []byte) (b Body, ok bool) {
	r := reader{scanner: scanner{b: payload}, text: string(payload)}
	ok = r.members(func(name string) bool {
		switch name {
		case "actor":
			return r.actor(&b.Actor)
		case "constraints":
			return r.constraints(&b.Constraints)
		case "context":
			b.Context = new(Context)
			return r.context(b.Context)
		case "intent":
			return r.intent(&b.Intent)
		case "trace_id":
			return r.string(&b.TraceID, isTraceID)
		case "version":
			return r.string(&b.Version, func(s string) bool { return s == Version })
		}
		return false
	})
	// No required member may be empty, so what is empty is missing.
	a, c := &b.Actor, &b.Constraints
	ok = ok && r.i == len(payload) && b.Version != "" && b.Intent.Type != "" && b.Intent.Args != nil && a.UserID != "" && a.Tenant != "" &&
		c.IssuedAt != "" && c.TTLSec != 0 && c.Audience != "" && c.IdempotencyKey != ""
	return b, ok
}

// reader reads plain values out of canonical JSON: members in any order, each at
// most once, as the scanner has seen to.
type reader struct {
	scanner
	text string // the same bytes
}

// members reads an object and has each value read.
func (r *reader) members(value func(name string) bool) bool {
	if !r.next('{') {
		return false
	}
	if r.next('}') {
		return true
	}
	for {
		name, ok := r.plainText()
		if !ok || !r.next(':') || !value(name) {
			return false
		}
		if !r.next(',') {
			return r.next('}')
		}
	}
}

// plainText reads a string without escapes and of ASCII only.
func (r *reader) plainText() (string, bool) {
	if !r.next('"') {
		return "", false
	}
	start := r.i
	r.i += verbatim(r.b[start:])
	s := r.text[start:r.i]
	return s, r.next('"')
}

func (r *reader) string(to *string, valid func(string) bool) bool {
	s, ok := r.plainText()
	*to = s
	return ok && valid(s)
}

// count reads an integer from 1 to most.
func (r *reader) count(to *int, most int) bool {
	start, n := r.i, 0
	for ; r.i < len(r.text) && '0' <= r.text[r.i] && r.text[r.i] <= '9' && n <= most; r.i++ {
		n = n*10 + int(r.text[r.i]-'0')
	}
	*to = n
	return r.i > start && 1 <= n && n <= most
}

// strings reads an array of at most so many strings, no two alike.
func (r *reader) strings(to *[]string, most int, valid func(string) bool) bool {
	if !r.next('[') {
		return false
	}
	list := []string{}
	for first := true; !r.next(']'); first = false {
		var s string
		if !first && !r.next(',') || !r.string(&s, valid) || len(list) == most || slices.Contains(list, s) {
			return false
		}
		list = append(list, s)
	}
	*to = list
	return true
}

func (r *reader) intent(in *Intent) bool {
	return r.members(func(name string) bool {
		switch name {
		case "type":
			return r.string(&in.Type, isID)
		case "args":
			start := r.i
			if start == len(r.b) || r.b[start] != '{' || !r.value(3) {
				return false
			}
			in.Args = r.b[start:r.i:r.i]
			return true
		}
		return false
	})
}

func (r *reader) actor(a *Actor) bool {
	return r.members(func(name string) bool {
		switch name {
		case "user_id":
			return r.string(&a.UserID, isID)
		case "tenant":
			return r.string(&a.Tenant, isID)
		case "roles":
			return r.strings(&a.Roles, 64, isID)
		case "grant":
			return r.string(&a.Grant, isCompact)
		}
		return false
	})
}

func (r *reader) constraints(c *Constraints) bool {
	return r.members(func(name string) bool {
		switch name {
		case "issued_at":
			return r.string(&c.IssuedAt, isTime)
		case "ttl_sec":
			return r.count(&c.TTLSec, 300)
		case "audience":
			return r.string(&c.Audience, func(s string) bool { return 1 <= len(s) && len(s) <= 256 })
		case "idempotency_key":
			return r.string(&c.IdempotencyKey, func(s string) bool { return isDigest(s) || consists(s, 128, inID) })
		case "capabilities":
			return r.strings(&c.Capabilities, 32, isCapability)
		}
		return false
	})
}

const largestNumber = 1_000_000 // of revision, step, occurrence

func (r *reader) context(c *Context) bool {
	return r.members(func(name string) bool {
		switch name {
		case "session_id":
			return r.string(&c.SessionID, isID)
		case "turn_id":
			return r.string(&c.TurnID, isID)
		case "plan_id":
			return r.string(&c.PlanID, isID)
		case "revision":
			return r.count(&c.Revision, largestNumber)
		case "step":
			return r.count(&c.Step, largestNumber)
		case "task_id":
			return r.string(&c.TaskID, isID)
		case "run_id":
			return r.string(&c.RunID, isID)
		case "node_id":
			return r.string(&c.NodeID, isID)
		case "occurrence":
			return r.count(&c.Occurrence, largestNumber)
		case "agent":
			c.Agent = new(Agent)
			return r.agent(c.Agent)
		case "cause":
			return r.string(&c.Cause, isDigest)
		case "labels":
			c.Labels = map[string]string{}
			return r.labels(c.Labels)
		}
		return false
	})
}

func (r *reader) agent(a *Agent) bool {
	ok := r.members(func(name string) bool {
		switch name {
		case "name":
			return r.string(&a.Name, isID)
		case "digest":
			return r.string(&a.Digest, isDigest)
		}
		return false
	})
	return ok && a.Name != "" && a.Digest != ""
}

func (r *reader) labels(to map[string]string) bool {
	ok := r.members(func(name string) bool {
		s, ok := r.plainText()
		to[name] = s
		return ok && isID(name) && len(s) <= 256
	})
	return ok && len(to) <= 32
}

// Sets of bytes, one bit each.
const (
	inText   = 1 << iota // stands in a JSON string as it is, and is one character
	inID                 // identifiers
	inArea               // parts of capabilities
	inBase64             // base64url
	inHex                // lower-case hexadecimal
)

var sets = func() (of [256]byte) {
	for c := range 256 {
		if ' ' <= c && c < 0x80 && c != '"' && c != '\\' {
			of[c] |= inText
		}
	}
	add := func(bytes string, set byte) {
		for i := range len(bytes) {
			of[bytes[i]] |= set
		}
	}
	add("0123456789abcdef", inHex)
	add("0123456789abcdefghijklmnopqrstuvwxyz_-", inArea|inID|inBase64)
	add("ABCDEFGHIJKLMNOPQRSTUVWXYZ", inID|inBase64)
	add(".", inArea|inID)
	return of
}()

// verbatim is how many bytes from the start are in inText.
func verbatim(b []byte) int {
	for i, c := range b {
		if sets[c]&inText == 0 {
			return i
		}
	}
	return len(b)
}

// consists: from one to most bytes, each of a set.
func consists(s string, most int, set byte) bool {
	for i := range len(s) {
		if sets[s[i]]&set == 0 {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= most
}

func isID(s string) bool { return consists(s, 64, inID) }

func isTraceID(s string) bool { return len(s) == 32 && consists(s, 32, inHex) }

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && consists(digits, 64, inHex)
}

// isCompact: three parts of base64url.
func isCompact(s string) bool {
	header, rest, ok1 := strings.Cut(s, ".")
	payload, sig, ok2 := strings.Cut(rest, ".")
	return ok1 && ok2 && len(s) <= 16384 && consists(header, len(s), inBase64) && consists(payload, len(s), inBase64) && consists(sig, len(s), inBase64)
}

// isCapability: area:verb or area:verb:resource.
func isCapability(s string) bool {
	area, rest, ok := strings.Cut(s, ":")
	verb, resource, resourced := strings.Cut(rest, ":")
	return ok && consists(area, 64, inArea) && consists(verb, 64, inArea) && (!resourced || isID(resource))
}

// isTime: a day and time of the calendar as FormatTime writes it.
func isTime(s string) bool {
	const layout = "0000-00-00T00:00:00.000Z"
	if len(s) != len(layout) {
		return false
	}
	for i := range len(layout) {
		if digit := '0' <= s[i] && s[i] <= '9'; digit != (layout[i] == '0') || !digit && s[i] != layout[i] {
			return false
		}
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}
