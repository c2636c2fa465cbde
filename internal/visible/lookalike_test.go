package visible_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/visible"
)

// TestLookAlikes: a letter that passes for a Latin one is written out where it can deceive, and
// left alone in words of its own script.
func TestLookAlikes(t *testing.T) {
	for text, want := range map[string]string{
		"paypal.com":               "paypal.com",
		"p\u0430ypal.com":          "p<U+0430>ypal.com",
		"\u0440\u0430ypal":         "<U+0440><U+0430>ypal",
		"Привет мир, hello":        "Привет мир, hello",
		"Ωmega Ωμέγα":              "<U+03A9>mega Ωμέγα",
		"ΑCME\u0301":               "<U+0391>CME\u0301",
		"\uff30ayee":               "<U+FF30>ayee",
		"\U0001d5c9ayee":           "<U+1D5C9>ayee",
		"Ana Müller, nº 5, 10 m²":  "Ana Müller, nº 5, 10 m²",
		"日本 Tokyo東京":               "日本 Tokyo東京",
		"x1\u0441":                 "x1<U+0441>",
		"\\n\u0430":                "\\n<U+0430>", // no JSON: a word with n
		"\u0430 \u0435 only there": "\u0430 \u0435 only there",
	} {
		if got := visible.Text(text, ""); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestLookAlikesJSON: in a document an escape is no part of a word, and the document stays equal.
func TestLookAlikesJSON(t *testing.T) {
	for doc, want := range map[string]string{
		"{\"a\":\"\\nПривет\"}":      "{\"a\":\"\\nПривет\"}",
		"{\"a\":\"p\u0430y\"}":       `{"a":"p\u0430y"}`,
		"{\"a\":\"\\u00e9Привет\"}":  "{\"a\":\"\\u00e9Привет\"}",
		"{\"p\u0430y\":\"Привет\"}":  `{"p\u0430y":"Привет"}`,
		"{\"a\":\"\U0001d5c9ayee\"}": `{"a":"\ud835\uddc9ayee"}`,
	} {
		got := visible.JSON([]byte(doc))
		if string(got) != want {
			t.Errorf("%s: %s, want %s", doc, got, want)
		}
		var before, after any
		if err := json.Unmarshal([]byte(doc), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &after); err != nil || !cmp.Equal(before, after) {
			t.Errorf("%s reads otherwise: %v", got, err)
		}
	}
	if got := visible.Scripts("Асе and Ωμέγα"); !cmp.Equal(got, []string{"Cyrillic", "Greek"}) {
		t.Errorf("scripts: %v", got)
	}
}
