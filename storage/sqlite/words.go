package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/storage"
)

// matchQuery is the FTS5 query for any word of the text; empty if the text has no
// word. Words are quoted, so nothing in them is an operator.
func matchQuery(ctx context.Context, db *sql.DB, q storage.Query) (string, error) {
	list := storage.Words(q.Text)
	if q.Fuzzy {
		for _, w := range slices.Clone(list) {
			near, err := spellings(ctx, db, strings.ToLower(w))
			if err != nil {
				return "", err
			}
			list = append(list, near...)
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	for i, w := range list {
		list[i] = `"` + w + `"`
	}
	return "words : (" + strings.Join(list, " OR ") + ")", nil
}

// spellings are the words of the index that a fuzzy query tries for a word, the nearest first. A word that is spelt so is
// among them, and so weighs more than others.
func spellings(ctx context.Context, db *sql.DB, word string) (near []string, err error) {
	most := storage.Edits(word)
	if most == 0 {
		return nil, nil
	}
	first, size := utf8.DecodeRuneInString(word)
	rows, err := db.QueryContext(ctx, "SELECT term FROM vocabulary WHERE term >= ? AND term < ? AND abs(length(term) - ?) <= ?",
		word[:size], string(first+1), utf8.RuneCountInString(word), most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	byEdits := make([][]string, most+1)
	for rows.Next() {
		var term string
		if err := rows.Scan(&term); err != nil {
			return nil, err
		}
		if n := edits([]rune(word), []rune(term)); n <= most {
			byEdits[n] = append(byEdits[n], term)
		}
	}
	near = slices.Concat(byEdits...)
	return near[:min(len(near), storage.MaxSpellings)], rows.Err()
}

// edits is how many letters must be added, left out, replaced or swapped with the next to make one word of another.
func edits(a, b []rune) int {
	var before, row []int
	next := make([]int, len(b)+1)
	for j := range next {
		next[j] = j
	}
	for i, x := range a {
		before, row, next = row, next, make([]int, len(b)+1)
		next[0] = i + 1
		for j, y := range b {
			replaced := row[j]
			if x != y {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && x == b[j-1] && a[i-1] == y {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
	}
	return next[len(b)]
}
