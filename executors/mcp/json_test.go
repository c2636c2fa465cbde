package mcp

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestJSONReader: words for numbers that JSON lacks become texts, wherever a read ends; all else stays.
func TestJSONReader(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":NaN,"b":[-Infinity, +inf,1e-3]}`: `{"a":"NaN","b":["-Infinity", "+inf",1e-3]}`,
		`{"NaN":"NaN \" NaN","n":null}`:        `{"NaN":"NaN \" NaN","n":null}`,
		`["\\",nan]`:                           `["\\","nan"]`,
		"an open \" quote\n{\"a\":NaN}\n":      "an open \" quote\n{\"a\":\"NaN\"}\n",
		"data: [Infinity]\n\n":                 "data: [\"Infinity\"]\n\n",
		`[123456789012345678901234567890nan]`:  `[123456789012345678901234567890nan]`,
		`-Infinity`:                            `"-Infinity"`,
		``:                                     ``,
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			got, err := io.ReadAll(&jsonReader{in: r})
			if err != nil || string(got) != want {
				t.Errorf("%q became %q, want %q (%v)", in, got, want, err)
			}
		}
	}
}
