package quakes

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRank(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{
			"largest first", `{"rows":[{"p":"a","m":5.4},{"p":"b","m":6.4}],"by":"m"}`,
			`{"rows":[{"m":6.4,"p":"b","rank":1},{"m":5.4,"p":"a","rank":2}]}`,
		},
		{
			"smallest first", `{"rows":[{"m":2},{"m":1}],"by":"m","descending":false}`,
			`{"rows":[{"m":1,"rank":1},{"m":2,"rank":2}]}`,
		},
		{
			"ties keep their order", `{"rows":[{"p":"a","m":5.4},{"p":"b","m":5.4},{"p":"c","m":5.40}],"by":"m"}`,
			`{"rows":[{"m":5.4,"p":"a","rank":1},{"m":5.4,"p":"b","rank":2},{"m":5.40,"p":"c","rank":3}]}`,
		},
		{
			"no value comes last", `{"rows":[{"m":null},{"x":1},{"m":-3}],"by":"m"}`,
			`{"rows":[{"m":-3,"rank":1},{"m":null,"rank":2},{"rank":3,"x":1}]}`,
		},
		{
			"no value comes last upwards", `{"rows":[{"m":null},{"m":-3}],"by":"m","descending":false}`,
			`{"rows":[{"m":-3,"rank":1},{"m":null,"rank":2}]}`,
		},
		{
			"texts", `{"rows":[{"n":"a"},{"n":"b"}],"by":"n"}`,
			`{"rows":[{"n":"b","rank":1},{"n":"a","rank":2}]}`,
		},
		{"no rows", `{"rows":[],"by":"n"}`, `{"rows":[]}`},
	}
	c := connect(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := call(t, c, "rank", tt.in)
			if r.IsError {
				t.Fatal(text(t, r))
			}
			if got := text(t, r); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			validate(t, "rank_input", []byte(tt.in))
			validate(t, "rank_output", r.RawStructuredContent)
		})
	}
}

func TestRankRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"by":"m"}`, `"rows" is required`},
		{`{"rows":[{"m":1}]}`, `"by" is required`},
		{`{"rows":[{"mag":1,"place":"x"}],"by":"magnitude"}`, "the first row has: mag, place"},
		{`{"rows":[{"m":1},{"m":"2"}],"by":"m"}`, "cannot be compared"},
		{`{"rows":[{"m":[1]}],"by":"m"}`, "row 1:"},
		{`{"rows":[null],"by":"m"}`, "row 1 is not an object"},
		{`{"rows":[1],"by":"m"}`, "bad arguments"},
		{`{"rows":[],"by":"m","top":3}`, `unknown field "top"`},
	}
	c := connect(t)
	for _, tt := range tests {
		r := call(t, c, "rank", tt.in)
		if got := text(t, r); !r.IsError || !strings.Contains(got, tt.want) {
			t.Errorf("rank %s: got %q (error %v), want an error with %q", tt.in, got, r.IsError, tt.want)
		}
	}
}

func TestRankLeavesItsInputAlone(t *testing.T) {
	r := row{"m": json.RawMessage("1")}
	if _, err := rank(rankInput{Rows: []row{r}, By: "m"}); err != nil {
		t.Fatal(err)
	}
	if len(r) != 1 {
		t.Errorf("the row of the caller became %v", r)
	}
}
