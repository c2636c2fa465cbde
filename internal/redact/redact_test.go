package redact

import (
	"maps"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----"
	for text, want := range map[string]string{
		"Write to ana@example.com, Ben <ben.o'neil+x@mail.example.co.uk>.": "Write to [email], Ben <[email]>.",
		"jürgen@bücher.example and a@b are":                                "[email] and a@b are",
		"a@x.io@y.io":                                                      "[email]@y.io",

		"4111 1111 1111 1111":                                "[card]",
		"card 4111-1111-1111-1111.":                          "card [card].",
		"12 4111 1111 1111 1111 7":                           "12 [card] 7",
		"378282246310005 5105105105105100 6011000990139424":  "[card] [card] [card]",
		"2223003122003222, 4111111111111112":                 "[card], 4111111111111112",
		"x4111111111111111 4111111111111111x 41111111111111": "x4111111111111111 4111111111111111x 41111111111111",
		"at 1764561600000 or 1764561600000000000":            "at 1764561600000 or 1764561600000000000",
		"0.4111111111111111, 5.4111111111111111":             "0.4111111111111111, 5.4111111111111111",
		"sha256:4111111111111111ab":                          "sha256:4111111111111111ab",
		"4111\u00a01111\u00a01111\u00a01111":                 "[card]",

		"DE89 3704 0044 0532 0130 00 and de89370400440532013000": "[iban] and [iban]",
		"GB82WEST12345698765432, NO9386011117947":                "[iban], [iban]",
		"DE88370400440532013000":                                 "DE88370400440532013000",
		"AB12CDEF34567890123456":                                 "AB12CDEF34567890123456",

		"+49 (0)30 123456-78, 0049 30 1234567, +1 (555) 010-9999": "[phone], [phone], [phone]",
		"(030) 1234567 and 555-010-9999 and 030/1234567":          "[phone] and [phone] and [phone]",
		"017612345678": "[phone]",
		"2026-12-01 04:11:22, 01.12.2026, 192.168.100.10, 000123456, +5, 550e8400-e29b-41d4-a716-446655440000": "2026-12-01 04:11:22, 01.12.2026, 192.168.100.10, 000123456, +5, 550e8400-e29b-41d4-a716-446655440000",

		pem + " sk-abcdefghijklmnop1234 ghp_abcdefghijklmnopqrst": "[key] [key] [key]",
		"eyJhbGciOiJFZERTQSJ9x.eyJzdWIiOiJhbmEifQ.c2ln":           "[key]",
		"postgres://ana:secret@db.example/x":                      "[key]db.example/x",
		"https://db.example/a:b@c skipping":                       "https://db.example/a:b@c skipping",
		"":                                                        "",
	} {
		counts := map[string]int{}
		got := Text(text, Kinds(), counts)
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		found := 0
		for n := range maps.Values(counts) {
			found += n
		}
		if found != strings.Count(want, "[") {
			t.Errorf("%q: counts %v", text, counts)
		}
		if again := Text(got, Kinds(), counts); again != got {
			t.Errorf("%q: again %q", got, again)
		}
	}
	if got := Text("ana@example.com 4111111111111111", []string{Card}, map[string]int{}); got != "ana@example.com [card]" {
		t.Errorf("cards alone: %q", got)
	}
}

// FuzzText: what was found is not found again, and nothing panics.
func FuzzText(f *testing.F) {
	f.Add("DE89 3704 0044 0532 0130 00 4111 1111 1111 1111 ana@example.com +49 30 1234567")
	f.Fuzz(func(t *testing.T, text string) {
		counts := map[string]int{}
		once := Text(text, Kinds(), counts)
		if len(counts) == 0 && once != text {
			t.Errorf("%q became %q", text, once)
		}
	})
}
