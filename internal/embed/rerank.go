package embed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
)

// RerankConfig of a service with a POST /rerank as Cohere, Jina, vLLM and others have it.
// BaseURL and Model are required.
type RerankConfig struct {
	BaseURL string // http or https; "/rerank" is added
	Key     string // bearer token; empty: none is sent
	Model   string
}

// Reranker scores how well documents answer a question. It is safe for concurrent use.
type Reranker struct {
	cfg RerankConfig
	service
}

// NewReranker sends nothing yet.
func NewReranker(cfg RerankConfig) (*Reranker, error) {
	s, err := newService("rerank", cfg.BaseURL, "/rerank", cfg.Key, cfg.Model)
	if err != nil {
		return nil, err
	}
	return &Reranker{cfg, s}, nil
}

// Name identifies the model of a score.
func (r *Reranker) Name() string { return r.cfg.Model }

// maxScores bounds the answer of a reranker in bytes: it may repeat the documents.
const maxScores = 8 << 20

// Scores returns one score for each document, in their order; higher is better. No error
// contains text of the service.
func (r *Reranker) Scores(ctx context.Context, question string, documents []string) ([]float64, error) {
	raw, _, err := r.post(ctx, map[string]any{"model": r.cfg.Model, "query": question, "documents": documents, "top_n": len(documents)}, maxScores)
	if err != nil {
		return nil, err
	}
	return readScores(raw, len(documents))
}

// readScores: each document has exactly one score.
func readScores(raw []byte, documents int) ([]float64, error) {
	wrong := errors.New("rerank: the answer of the service is not one score for each document")
	var a struct {
		Results []struct {
			Index *int     `json:"index"`
			Score *float64 `json:"relevance_score"`
			Other *float64 `json:"score"` // of some
		} `json:"results"`
	}
	if len(raw) > maxScores || json.Unmarshal(raw, &a) != nil || len(a.Results) != documents {
		return nil, wrong
	}
	out, seen := make([]float64, documents), make([]bool, documents)
	for _, x := range a.Results {
		score := cmp.Or(x.Score, x.Other)
		if x.Index == nil || *x.Index < 0 || *x.Index >= documents || seen[*x.Index] || score == nil {
			return nil, wrong
		}
		out[*x.Index], seen[*x.Index] = *score, true
	}
	return out, nil
}
