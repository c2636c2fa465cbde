package knowledge

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestChunks: no chunk is too long, each ends with a sentence, begins with the end of the one
// before, and nothing is lost.
func TestChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var text strings.Builder
		for range random.IntN(400) {
			words := 1 + random.IntN(30)
			text.WriteString("Word")
			for range words {
				text.WriteString([]string{" harbour", " é", " 港", " of", " lengthier"}[random.IntN(5)])
			}
			text.WriteString([]string{". ", "! ", "?\n", ".\n\n"}[random.IntN(4)])
		}
		whole := strings.TrimSpace(text.String())
		at := 0
		for i, c := range chunks(whole) {
			from := strings.Index(whole[max(0, at-overlapBytes-8):], c) + max(0, at-overlapBytes-8)
			switch {
			case len(c) > chunkBytes || !strings.ContainsAny(c[len(c)-1:], ".!?"):
				t.Fatalf("chunk %d has %d bytes and ends with %q", i, len(c), c[len(c)-1:])
			case from > at || i > 0 && from >= at:
				t.Fatalf("chunk %d begins at %d, the one before ends at %d", i, from, at)
			}
			at = from + len(c)
			for at < len(whole) && strings.ContainsRune(" \n", rune(whole[at])) {
				at++
			}
		}
		if at != len(whole) {
			t.Fatalf("%d of %d bytes are in chunks", at, len(whole))
		}
	}
}

// TestLongSentence: what has no end of a sentence is cut between words, and where there are
// none between characters.
func TestLongSentence(t *testing.T) {
	for _, text := range []string{strings.Repeat("harbour ", 5000), strings.Repeat("港", 5000), strings.Repeat("x", 50_000)} {
		got := chunks(text)
		n := 0
		for _, c := range got {
			n += len(c)
			if len(c) > chunkBytes || !utf8.ValidString(c) || strings.HasPrefix(c, "arbour") {
				t.Errorf("%d bytes: %.20s", len(c), c)
			}
		}
		if n < len(strings.TrimSpace(text))-len(got) {
			t.Errorf("%d of %d bytes", n, len(text))
		}
	}
	if got := chunks(" \n "); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestTextOfHTML: what a page shows, and nothing that it does not.
func TestTextOfHTML(t *testing.T) {
	page := `<!doctype html><html><head><title>No</title><style>p{}</style></head><body><h1>Ports &amp; locks</h1>
<p>The <b>harb</b>our opens
at six.<br>Daily.<script>if (a < b) { no() }</script></p><!-- no --><ul><li>one<li>two</ul>`
	if got, want := textOfHTML([]byte(page)), "Ports & locks\nThe harbour opens at six.\nDaily.\none\ntwo"; got != want {
		t.Errorf("%q", got)
	}
	deep := strings.Repeat("<div>", 200_000) + "deep"
	if got := textOfHTML([]byte(deep)); got != "deep" {
		t.Errorf("%.50q", got)
	}
}
