package python

import (
	"fmt"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	for in, want := range map[string]int{
		"":                                       0,
		"  \n":                                   0,
		"[]":                                     0,
		"[ ]":                                    0,
		"[1]":                                    1,
		"[1, 2,3]":                               3,
		`[{"a":[1,2]},{"b":{"c":{}}},[4,5,6]]`:   3,
		`{"type":"x","f":[{},{}],"box":[1,2,3]}`: 3,
		`{"a":1}`:                                1,
		`{"a":{"b":[1,2]}}`:                      2,
		`["a,b","]\"[",",\\"]`:                   3,
		"{\"a\":1}\n{\"a\":2}\n":                 2,
		"a,b\n1,2\n":                             2,
		"a,b\n1,2":                               2,
		`"text"`:                                 1,
		"[1, 2,":                                 2,
		"]]]":                                    1,
	} {
		var r rows
		for _, c := range []byte(in) { // byte by byte: pieces must not matter
			_, _ = r.Write([]byte{c})
		}
		if got := r.count(); got != want {
			t.Errorf("%q: %d rows, want %d", in, got, want)
		}
	}
}

func TestRowsOfHostileNesting(t *testing.T) {
	var r rows
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	_, _ = fmt.Fprint(&r, deep+"[1,2]")
	if r.depth != 0 || r.count() != 2 {
		t.Errorf("open %d, rows %d", r.depth, r.count())
	}
}
