package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"aob.dev/writ/audit"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/gateway/consoleapi/reads"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// consoleAPI is this process's part of the console API.
func (n *Node) consoleAPI() *reads.Reads {
	r := &reads.Reads{
		Journal: n.journal, State: n.directory, Live: n.policy, Documents: n.documents, Board: n.health,
		Source: audit.Source{Origin: n.Origin(), Records: n.journal, Blobs: n.blobs}, Blob: n.systemBlob, Look: n.Look, Now: n.cfg.Now, Log: n.cfg.Log,
		Declared: func(ctx context.Context) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			return n.conns.of(natsserver.Router).Request(ctx, bus.SkillVersions, nil)
		},
	}
	if n.standalone() {
		r.Archive = n.Archive
	}
	return r
}

// tellVersions returns the skill versions that servers declare, as this process last saw them.
func (n *Node) tellVersions(ctx context.Context, _ []byte) []byte {
	list, err := approval.ReadVersions(n.cfg.Dir)
	raw, bad := json.Marshal(list)
	if err = errors.Join(err, bad); err != nil {
		n.cfg.Log.WarnContext(ctx, "the declared versions of skills cannot be read", slog.String("error", err.Error()))
	}
	return raw
}

// cachedAnswers asks an executor of skills for the cached answers that serve a user.
func (n *Node) cachedAnswers(ctx context.Context, of intents.Principal) (out catalog.CacheStatsResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	question, _ := json.Marshal(bus.SkillAnswersRequest{Tenant: of.Tenant, UserID: of.UserID}) // plain data
	raw, err := n.conns.of(natsserver.Router).Request(ctx, bus.SkillAnswers, question)
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "no executor of skills says which answers it has", slog.String("error", err.Error()))
		return out, intents.Refuse(intents.DispatchUnavailable, "", "no executor of skills answers")
	}
	return out, json.Unmarshal(raw, &out)
}

// tellAnswers reports the cached answers of this process that serve a user.
func (n *Node) tellAnswers(_ context.Context, question []byte) []byte {
	var q bus.SkillAnswersRequest
	_ = json.Unmarshal(question, &q) // of nobody: none
	raw, _ := json.Marshal(n.answers.Stats(intents.Principal{Tenant: q.Tenant, UserID: q.UserID}))
	return raw
}
