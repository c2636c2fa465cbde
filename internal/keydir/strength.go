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

// How much likelier, in bits, a text must be as language than as random letters to be taken for
// language, and what each of its letters gives then. Of random texts at most one in two to the
// power of likelyBits is mistaken.
const (
	likelyBits   = 16
	languageBits = 2
)

// pairs is how much likelier each pair of letters is in a word than in a random text, in bits.
var pairs = sync.OnceValue(func() (of [26][26]float64) {
	var count [26][26]float64
	for word := range rank() {
		for i := 1; i < len(word); i++ {
			if isLetter(word[i-1]) && isLetter(word[i]) {
				count[word[i-1]-'a'][word[i]-'a']++
			}
		}
	}
	for a := range count {
		total := 0.0
		for b := range count[a] {
			count[a][b] += 0.5 // a pair that no word has is rare, too
			total += count[a][b]
		}
		for b := range count[a] {
			of[a][b] = math.Log2(count[a][b] / total * 26)
		}
	}
	return of
})

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// isLanguage reports whether the letters of a text in lower case follow each other as they do in
// words, of the list or of another European language.
func isLanguage(lower string) bool {
	likelier := 0.0
	for i := 1; i < len(lower); i++ {
		if isLetter(lower[i-1]) && isLetter(lower[i]) {
			likelier += pairs()[lower[i-1]-'a'][lower[i]-'a']
		}
	}
	return likelier >= likelyBits
}

// bits is how much somebody has to guess who knows how keys are made of words: of all ways to take
// a text apart, the one that gives least. A word gives what its rank does, whatever its case and
// signs for letters; a letter of what reads like language languageBits; any other character what
// those of its kinds do, or nothing if it goes on a sequence (abc, 321, aaa), repeats what stands
// before, or separates words again.
func bits(text string) float64 {
	lower := strings.ToLower(text)
	least := make([]float64, len(text)+1)
	each, language, seen := math.Log2(kinds(text)), isLanguage(lower), map[string]bool{}
	for i := range len(text) {
		least[i+1] = least[i] + each
		if language && isLetter(lower[i]) {
			least[i+1] = least[i] + min(each, languageBits)
		}
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
