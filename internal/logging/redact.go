package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	"aob.dev/writ/internal/redact"
)

// Replacements of redacted data.
const (
	removedMail  = "[email]"
	removedPhone = "[phone]"
	removedKey   = "[key]"
)

// secretName is a name whose value is a secret, whatever it looks like.
var secretName = regexp.MustCompile(`(?i)^(.*[_-])?(password|passwd|passphrase|secret|authorization|cookie|set-cookie|api[_-]?key|private[_-]?key|(access|refresh|id|auth|bearer)[_-]?token|token|grant|credentials?)$`)

// pattern is one form of redacted data. needs is a cheap sign that it may be in a text in lower
// case.
type pattern struct {
	needs func(string) bool
	form  *regexp.Regexp
	put   string // may name groups
	only  func(match string) bool
}

// patterns are tried in this order: a key may contain something like a number or an address.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{having("-----begin"), regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----(?s:.*?)(?:-----END [A-Z0-9 ]+-----|$)`), removedKey, nil},
		{having("eyj"), regexp.MustCompile(`\beyJ[\w-]{4,}\.[\w-]*(?:\.[\w-]*){1,3}`), removedKey, nil},
		{having("://"), regexp.MustCompile(`(://)[^/\s"'<>?#]+@`), "${1}" + removedKey + "@", nil},
		{having("writ_", "sk-", "sk_", "pk_", "rk_", "akia", "asia", "aiza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "hf_"), regexp.MustCompile(
			`\b(?:writ_[\w-]{20,}|sk-[\w-]{12,}|[spr]k_(?:live|test)_\w{8,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{8,}|hf_\w{20,})`), removedKey, nil},
		{func(s string) bool { return len(s) >= 58 }, regexp.MustCompile(`\bS[ACNOUX][A-Z2-7]{56}\b`), removedKey, nil}, // a seed of an nkey
		{having("bearer", "authorization"), regexp.MustCompile(`(?i)\b(bearer|(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:basic|bearer|digest|apikey)?)\s*[^\s"',;\[][^\s"',;]{5,}`), "${1} " + removedKey, digits},
		{having("passw", "passphrase", "secret", "credential", "key", "token", "sig", `"d"`), regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|credential|api[_-]?key|private[_-]?key|token|signature|[?&]key|[?&]sig|"d")["']?\s*[:=]\s*["']?)[^\s"'&,;\[\])}]{6,}`), "${1}" + removedKey, digits},
		{having("@", "%40", `\u0040`, "＠"), regexp.MustCompile(`[\p{L}\p{N}\p{M}._%+'&*^~!#$-]+(?:@|%40|\\u0040|＠)(?:[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}-]*[\p{L}\p{N}\p{M}])?\.)+(?:xn--[a-zA-Z0-9-]+|[\p{L}\p{M}]{2,})`), removedMail, nil},
		{having("+", "00"), regexp.MustCompile(`(^|[^\w.+-])(?:\+|00)[1-9]\d{0,2}[ ./-]?(?:\(0?\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}\b`), "${1}" + removedPhone, nil},
		{digits, regexp.MustCompile(`(^|[^\w.-])(?:\(0?\d{2,4}\) ?\d{2,4}[ .-]?\d{2,4}(?:[ .-]?\d{2,4})?|[2-9]\d{2}([-. ])[2-9]\d{2}[-. ]\d{4}|0[1-9]\d{0,4}[ /-]\d{2,}(?:[ /-]?\d{2,}){1,4}|0[1-9]\d{8,10})\b`), "${1}" + removedPhone, nil},
	}
})

func having(signs ...string) func(string) bool {
	return func(s string) bool {
		for _, sign := range signs {
			if strings.Contains(s, sign) {
				return true
			}
		}
		return false
	}
}

// digits distinguishes a key from a word that follows "token:", too.
func digits(match string) bool { return strings.ContainsAny(match, "0123456789") }

// Text redacts a text.
func Text(s string) string {
	s = redact.Text(s, []string{redact.Card}, map[string]int{})
	small := strings.ToLower(s)
	for _, p := range patterns() {
		if !p.needs(small) {
			continue
		}
		if p.only == nil {
			s = p.form.ReplaceAllString(s, p.put)
			continue
		}
		s = p.form.ReplaceAllStringFunc(s, func(match string) string {
			if !p.only(match) {
				return match
			}
			return p.form.ReplaceAllString(match, p.put)
		})
	}
	return s
}

// attr is an attribute without data that must not be logged, at any depth.
func attr(a slog.Attr) slog.Attr {
	if secretName.MatchString(a.Key) && a.Value.Kind() != slog.KindGroup {
		return slog.String(a.Key, removedKey)
	}
	return slog.Attr{Key: Text(a.Key), Value: value(a.Value.Resolve())}
}

func value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(Text(v.String()))
	case slog.KindInt64, slog.KindUint64: // a card's number is one too
		if text := v.String(); Text(text) != text {
			return slog.StringValue(Text(text))
		}
		return v
	case slog.KindGroup:
		var out []slog.Attr
		for _, a := range v.Group() {
			out = append(out, attr(a))
		}
		return slog.GroupValue(out...)
	case slog.KindAny, slog.KindLogValuer:
		return anyValue(v.Any())
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindTime:
	}
	return v
}

// anyValue is a value as JSON, so that nothing hides in a member.
func anyValue(v any) slog.Value {
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case error:
		return slog.StringValue(Text(v.Error()))
	case *slog.Source:
		return slog.AnyValue(v)
	case []byte:
		return slog.StringValue(Text(string(v)))
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return slog.StringValue(Text(fmt.Sprintf("%+v", v)))
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return slog.StringValue(Text(string(raw)))
	}
	return slog.AnyValue(clean(tree))
}

// clean redacts a tree of JSON.
func clean(v any) any {
	switch v := v.(type) {
	case string:
		return Text(v)
	case json.Number:
		if text := Text(v.String()); text != v.String() {
			return text
		}
		return v
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if secretName.MatchString(name) {
				out[name] = removedKey
			} else {
				out[Text(name)] = clean(member)
			}
		}
		return out
	}
	return v
}
