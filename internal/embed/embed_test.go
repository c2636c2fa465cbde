package embed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/testing/egresstest"
)

// TestFaults: a server of models that fails is told of in words, with the setting that helps.
func TestFaults(t *testing.T) {
	for name, b := range egresstest.Servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e, err := embed.NewOpenAI(embed.OpenAIConfig{BaseURL: b.URL, Key: "hidden", Model: "m", Dimension: 3, Wait: func(context.Context, time.Duration) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			r, err := embed.NewReranker(embed.RerankConfig{BaseURL: b.URL, Key: "hidden", Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			_, notEmbedded := e.Embed(ctx, []string{"confidential"})
			_, notSorted := r.Scores(ctx, "confidential", []string{"confidential"})
			for stands, err := range map[string]error{"texts are found by their words": notEmbedded, "what is found keeps its order": notSorted} {
				b.Check(t, err, stands)
				if err != nil && (strings.Contains(err.Error(), "confidential") || strings.Contains(err.Error(), "hidden")) {
					t.Error(err)
				}
			}
		})
	}
}
