package node

import (
	"context"
	"encoding/json"
	"log/slog"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

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
