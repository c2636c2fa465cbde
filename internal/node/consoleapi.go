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
