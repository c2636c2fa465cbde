// Package redact finds personal data and credentials in texts. It knows forms, not meanings: what
// is written in another form passes, and a number that happens to have the form of a card is found.
package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The kinds of what is found.
const (
	Key   = "key"   // a credential: a private key, a token, a password in a URL
	Email = "email" // an e-mail address
	IBAN  = "iban"  // an account number with valid check digits
	Card  = "card"  // the number of a payment card with a valid check digit
	Phone = "phone" // a telephone number
)

// finders are what finds each kind, in the order in which they look: none finds a part of what
// another one has found.
var finders = []struct {
	kind string
	find func(text string) [][]int
}{
	{Key, matches(credentials)},
	{Email, emails},
	{IBAN, ibans},
	{Card, cards},
	{Phone, phones},
}

// Kinds returns all kinds, in the order in which they are looked for.
func Kinds() (out []string) {
	for _, f := range finders {
		out = append(out, f.kind)
	}
	return out
}

// Text replaces what is found of the given kinds by the kind in brackets, such as [email], and adds
// to the counts. The result of Text has none of them any more.
func Text(text string, kinds []string, counts map[string]int) string {
	for _, f := range finders {
		if !slices.Contains(kinds, f.kind) {
			continue
		}
		var out strings.Builder
		from := 0
		for _, m := range f.find(text) {
			out.WriteString(text[from:m[0]] + "[" + f.kind + "]")
			from = m[1]
			counts[f.kind]++
		}
		if from > 0 {
			text = out.String() + text[from:]
		}
	}
	return text
}

// Credentials are the forms of keys and tokens, as regular expressions.
var Credentials = []string{
	`-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\z)`,
	`\beyJ[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*`, // a signed token
	`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`,
	`\b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|xoxb|xoxp|xoxa|xoxs)[-_][A-Za-z0-9_-]{16,}`,
	`\bwrit_[A-Za-z0-9_-]{43}`,
	`\bAKIA[0-9A-Z]{16}\b`,
	`\b[Bb]earer [A-Za-z0-9._~+/-]{16,}`,
}

// credentials are Credentials, and forms that are too common in what models write to be kept from
// their users.
var credentials = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join(append(slices.Clone(Credentials),
		`\bASIA[0-9A-Z]{16}\b`, `\bAIza[A-Za-z0-9_-]{35}`, `\b(?:npm|hf)_[A-Za-z0-9]{20,}`, `\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:[^\s/@]{1,200}@`), "|"))
})

var email = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\p{L}\p{N}._%+'-]{1,64}@(?:[\p{L}\p{N}-]{1,63}\.){1,8}[\p{L}][\p{L}\p{N}-]{1,62}`)
})

// phone is a number with its country; with its area in brackets; in two groups of three and one of
// four; or with a leading 0, with and without spaces.
var phone = sync.OnceValue(func() *regexp.Regexp {
	const sep = `[ \x{a0}\x{202f}().\-\x{2011}/]`
	return regexp.MustCompile(`(?:\+|\b00)` + sep + `?[1-9](?:` + sep + `{0,2}\d){6,14}|` +
		`\(\d{2,5}\)(?:` + sep + `{0,2}\d){5,10}|` +
		`\b\d{3}[-. ]\d{3}[-. ]\d{4}|` +
		`\b0[1-9]\d{0,3}[ \x{a0}/](?: ?\d){5,9}|` +
		`\b0[1-9]\d{7,10}`)
})

func matches(pattern func() *regexp.Regexp) func(string) [][]int {
	return func(text string) [][]int { return pattern().FindAllStringIndex(text, -1) }
}

func emails(text string) [][]int {
	if !strings.Contains(text, "@") {
		return nil
	}
	return email().FindAllStringIndex(text, -1)
}

// phones leaves out what goes on as a longer word or number.
func phones(text string) [][]int {
	return slices.DeleteFunc(phone().FindAllStringIndex(text, -1), func(m []int) bool {
		return m[0] > 0 && wordy(text[m[0]-1]) || m[1] < len(text) && wordy(text[m[1]])
	})
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func wordy(c byte) bool { return digit(c) || letter(c) || c == '_' }
