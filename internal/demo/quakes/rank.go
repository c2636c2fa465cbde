package quakes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxRows bounds one call of rank; its input schema says the same.
const maxRows = 100_000

func rankSkill() skill {
	return skill{
		name: "rank",
		description: "Ranks rows by one of their members, largest first unless told otherwise: " +
			"the strongest, highest, longest, newest or most expensive of anything. Returns the same rows in order, each with its rank.",
		input:  schema("rank_input"),
		output: schema("rank_output"),
		handle: typed(rank),
	}
}

type row map[string]json.RawMessage

type rankInput struct {
	Rows       []row  `json:"rows"`
	By         string `json:"by"`
	Descending *bool  `json:"descending"`
}

type rankOutput struct {
	Rows []row `json:"rows"`
}

// rank sorts stably, so rows with equal values stay in their original order,
// and numbers the rows from 1. Rows without a value (null, or no such member)
// come last in either direction. Values must be all numbers or all texts.
func rank(in rankInput) (rankOutput, error) {
	switch {
	case in.Rows == nil:
		return rankOutput{}, errors.New(`"rows" is required: an array of objects`)
	case in.By == "":
		return rankOutput{}, errors.New(`"by" is required: the name of the member to rank by`)
	case len(in.Rows) > maxRows:
		return rankOutput{}, fmt.Errorf("%d rows are more than the %d that one call ranks", len(in.Rows), maxRows)
	}
	keyed, err := keys(in.Rows, in.By)
	if err != nil {
		return rankOutput{}, err
	}
	sign := -1
	if in.Descending != nil && !*in.Descending {
		sign = 1
	}
	slices.SortStableFunc(keyed, func(a, b keyedRow) int {
		switch {
		case a.none && b.none:
			return 0
		case a.none:
			return 1
		case b.none:
			return -1
		}
		return sign * cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
	})
	out := rankOutput{Rows: make([]row, len(keyed))}
	for i, k := range keyed {
		r := maps.Clone(k.row)
		r["rank"] = json.RawMessage(fmt.Sprint(i + 1))
		out.Rows[i] = r
	}
	return out, nil
}

// keyedRow is a row with the value that decides its place.
type keyedRow struct {
	row    row
	number float64
	text   string
	none   bool // it has no value
}

func keys(rows []row, by string) ([]keyedRow, error) {
	keyed := make([]keyedRow, len(rows))
	numbers, texts := 0, 0
	for i, r := range rows {
		if r == nil {
			return nil, fmt.Errorf("row %d is not an object", i+1)
		}
		var value any
		_ = json.Unmarshal(r[by], &value) // missing: none
		keyed[i].row = r
		switch v := value.(type) {
		case nil:
			keyed[i].none = true
		case float64:
			keyed[i].number = v
			numbers++
		case string:
			keyed[i].text = v
			texts++
		default:
			return nil, fmt.Errorf("row %d: %q is neither a number nor a text", i+1, by)
		}
	}
	if numbers > 0 && texts > 0 {
		return nil, fmt.Errorf("%q is a number in %d rows and a text in %d: these cannot be compared", by, numbers, texts)
	}
	if len(rows) > 0 && numbers+texts == 0 {
		return nil, fmt.Errorf("no row has a value for %q; the first row has: %s", by, strings.Join(slices.Sorted(maps.Keys(rows[0])), ", "))
	}
	return keyed, nil
}
