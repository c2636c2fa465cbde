package node

import (
	"aob.dev/writ/audit"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/storage"
)

// conditionStream: the receiver of the record takes nothing.
const conditionStream = "audit_stream"

// startAuditStream starts sending the record to its receiver. The router that decides does it.
func (n *Node) startAuditStream(g *group) {
	if n.cfg.AuditStream == nil {
		return
	}
	s := audit.Stream{
		Origin: n.Origin(), Records: n.journal, Receiver: n.cfg.AuditStream, Progress: storage.NewProgress(), Log: n.cfg.Log,
		Store: durable.Document(datadir.AuditStream(n.cfg.Dir)),
		Failing: func(err error) {
			if err == nil {
				n.health.Clear(conditionStream)
				return
			}
			n.health.Raise(health.Condition{Name: conditionStream, Reason: "the record is not streamed: " + err.Error(), Do: "see to its receiver; writ tries again by itself"})
		},
	}
	if !n.standalone() {
		s.Store = bus.NewDocument(n.conns.of(natsserver.Router), conditionStream)
	}
	n.followers.Add(s.Progress)
	g.run("audit stream", s.Run)
}
