package keydir

import (
	_ "embed"
	"math"
	"strings"
	"sync"
)

// wordList has words, the commonest first: of the frequency lists of zxcvbn (MIT licence, Copyright
// 2018 Vincent Vanackere and Trustelem; Copyright 2012-2016 Dan Wheeler and Dropbox, Inc.).
//
//go:embed words.txt
var wordList string

const longestWord = 16

// rank of each word, from 1.
var rank = sync.OnceValue(func() map[string]float64 {
	of := map[string]float64{}
	for w := range strings.Lines(wordList) {
		of[strings.TrimSuffix(w, "\n")] = float64(len(of) + 1)
	}
	return of
})

// letters that signs stand for in words.
var letters = strings.NewReplacer("@", "a", "4", "a", "3", "e", "1", "i", "!", "i", "0", "o", "$", "s", "5", "s", "7", "t")

// bits is how much somebody has to guess who knows how keys are made of words: of all ways to take
// a text apart, the one that gives least. A word gives what its rank does, whatever its case and
// signs for letters; a character what those of its kinds do, or nothing if it goes on a sequence
// (abc, 321, aaa), repeats what stands before, or separates words again.
func bits(text string) float64 {
	lower := strings.ToLower(text)
	least := make([]float64, len(text)+1)
	each, seen := math.Log2(kinds(text)), map[string]bool{}
	for i := range len(text) {
		least[i+1] = least[i] + each
		if i > 0 && strings.IndexByte(text[:i], text[i]) >= 0 && strings.IndexByte("-_.", text[i]) >= 0 {
			least[i+1] = least[i]
		}
		if i > 1 {
			if step := int(lower[i]) - int(lower[i-1]); seen[lower[i-2:i+1]] || step >= -1 && step <= 1 && step == int(lower[i-1])-int(lower[i-2]) {
				least[i+1] = least[i]
			}
			seen[lower[i-2:i+1]] = true
		}
		for from := max(0, i+1-longestWord); from < i; from++ {
			for _, word := range []string{lower[from : i+1], letters.Replace(lower[from : i+1])} {
				if r, ok := rank()[word]; ok {
					least[i+1] = min(least[i+1], least[from]+1+math.Log2(r))
				}
			}
		}
	}
	return least[len(text)]
}

// kinds is how many characters there are of the kinds that a text has.
func kinds(text string) (n float64) {
	for _, kind := range []string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		if strings.ContainsAny(text, kind) {
			n += float64(len(kind))
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789", r) && (r|0x20 < 'a' || r|0x20 > 'z') }) {
		n += 32
	}
	return max(n, 1)
}
