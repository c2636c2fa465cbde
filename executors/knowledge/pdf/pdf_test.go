package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// document is a PDF of pages that each show one line.
func document(pages ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(format string, args ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), fmt.Sprintf(format, args...))
	}
	b.WriteString("%PDF-1.7\n")
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object("<</Type/Catalog/Pages 2 0 R>>")
	object("<</Type/Pages/Kids[%s]/Count %d>>", kids.String(), len(pages))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	for i, text := range pages {
		object("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>", 5+2*i)
		show := "BT /F1 12 Tf 50 700 Td (" + text + ") Tj ET"
		object("<</Length %d>>stream\n%s\nendstream", len(show), show)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, table)
	return b.Bytes()
}

// TestPDF: the text of all pages, and no document, however broken, that does more than fail.
func TestPDF(t *testing.T) {
	whole := document("The harbour opens at six.", "The lock opens at seven.")
	text, err := Text(t.Context(), "a", whole, 1000)
	if err != nil || !strings.Contains(text, "harbour opens at six.") || !strings.Contains(text, "lock opens at seven.") {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := Text(t.Context(), "a", whole, 10); !errors.Is(err, ErrLarge) {
		t.Errorf("too much text: %v", err)
	}
	// One page that is there as often as its document says.
	many := bytes.Replace(document(), []byte("/Kids[]"), []byte("/Kids["+strings.Repeat("4 0 R ", 6000)+"]"), 1)
	if text, err := Text(t.Context(), "a", document(make([]string, 5001)...), 1<<20); !errors.Is(err, ErrPages) {
		t.Errorf("5,001 pages: %q, %v", text, err)
	}
	if text, err := Text(t.Context(), "a", many, 1<<20); !errors.Is(err, ErrPages) && !errors.Is(err, ErrBroken) && strings.TrimSpace(text) != "" {
		t.Errorf("a page 6,000 times: %q, %v", text, err)
	}
	for name, raw := range map[string][]byte{
		"empty": nil, "no PDF": []byte("harbour"), "header alone": []byte("%PDF-1.7\n"), "cut": whole[:len(whole)/3],
		"no page": document(), "cycle": bytes.ReplaceAll(whole, []byte("/Kids[4 0 R"), []byte("/Kids[2 0 R")),
	} {
		if text, err := Text(t.Context(), "a", raw, 1000); !errors.Is(err, ErrBroken) && strings.TrimSpace(text) != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		raw := bytes.Clone(whole)
		for range 1 + random.IntN(20) {
			raw[random.IntN(len(raw))] = byte(random.IntN(256))
		}
		_, _ = Text(t.Context(), "a", raw, 1000)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Text(over, "a", whole, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	// A tenant has one turn, and others have theirs.
	leave, err := turns.Wait(t.Context(), "b", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Text(over, "b", whole, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("a second document of a tenant: %v", err)
	}
	leave()
	if turns.Used() != 0 || turns.Waiting() != 0 {
		t.Errorf("%d turns are taken, %d wait", turns.Used(), turns.Waiting())
	}
	if text, err := Text(t.Context(), "a", whole, 1000); err != nil || !strings.Contains(text, "harbour") {
		t.Errorf("after all that: %q, %v", text, err)
	}
}
