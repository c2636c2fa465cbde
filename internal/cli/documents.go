package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
)

// documents is where the configuration puts documents.
func documents(c config.Config) (datadir.DocumentsAt, error) {
	d := datadir.DocumentsAt{
		URL: c.Documents, Authorization: c.DocumentsAuth, Prefix: c.DocumentsPrefix, Engine: c.VectorEngine, Dimension: c.VectorDimension,
	}
	if c.Documents == "" {
		return d, nil
	}
	if c.DocumentsCA != "" {
		var err error
		if d.CA, err = os.ReadFile(c.DocumentsCA); err != nil {
			return d, fmt.Errorf("documents_ca: %w", err)
		}
	}
	return d, d.Validate()
}

// newEmbedder makes the embedder that the configuration names; nil: none.
func newEmbedder(c config.Config) (embed.Embedder, error) {
	dimension := cmp.Or(c.VectorDimension, storage.DefaultDimension)
	if c.Embedder == "none" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if c.Embedder == "hashed" {
		return embed.NewHashed(dimension)
	}
	return embed.NewOpenAI(embed.OpenAIConfig{
		BaseURL: c.EmbedderURL, Key: c.EmbedderKey, Model: strings.TrimPrefix(c.Embedder, "openai:"), Dimension: dimension,
	})
}
