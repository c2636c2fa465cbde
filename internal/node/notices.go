package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/notices"
)

// Notices is a receiver of approvals that wait, and of which.
type Notices struct {
	Receiver notify.Receiver
	For      notices.For
}

// startNotices starts telling people of approvals that wait. The router that decides does it.
func (n *Node) startNotices(g *group) {
	for _, to := range n.cfg.Notices {
		n.sayUnmatched(g.ctx, to)
		name := to.Receiver.Name()
		one := notices.Notices{
			Receiver: to.Receiver, For: to.For, Approvals: n.router.Notices(), Base: n.cfg.PublicURL, Now: n.cfg.Now, Log: n.cfg.Log, Failing: n.noticesFail,
			Store: durable.Document(datadir.Notices(n.cfg.Dir, name)),
		}
		if !n.standalone() {
			one.Store = bus.NewDocument(n.conns.of(natsserver.Router), "notices."+name)
		}
		g.run("notices of "+name, one.Run)
	}
}

// noticesFor lists the receivers that are told of what somebody may approve.
func (n *Node) noticesFor(tenant, user string, roles []string) (names []string) {
	for _, to := range n.cfg.Notices {
		if to.For.Reaches(tenant, user, roles) {
			names = append(names, to.Receiver.Name())
		}
	}
	return names
}

func (n *Node) noticesFail(receiver string, err error) {
	name := "notices." + receiver
	if err == nil {
		n.health.Clear(name)
		return
	}
	n.health.Raise(health.Condition{Name: name, Reason: "people are not told of approvals that wait: " + err.Error(), Do: "see that it takes messages: writ notify test " + receiver})
}

// sayUnmatched says who a receiver names that no tenant has: nothing is told for them.
func (n *Node) sayUnmatched(ctx context.Context, to Notices) {
	tenants := n.directory.Tenants()
	dir := n.directory.Directory()
	if to.For.Tenant != "" {
		if !slices.Contains(tenants, to.For.Tenant) {
			n.namesNobody(ctx, to, "there is no tenant "+to.For.Tenant, "writ tenant add "+to.For.Tenant)
		}
		tenants = []string{to.For.Tenant}
	}
	for _, role := range to.For.Roles {
		if !slices.ContainsFunc(tenants, func(t string) bool { caps, _ := dir.Capabilities(t, []string{role}); return len(caps) > 0 }) {
			n.namesNobody(ctx, to, "there is no role "+role, "writ tenant role list")
		}
	}
	for _, user := range to.For.Users {
		if !slices.ContainsFunc(tenants, func(t string) bool { _, found, _ := dir.UserRoles(t, user); return found }) {
			n.namesNobody(ctx, to, fmt.Sprintf("there is no user %s with a role", user), "writ user put "+user+" --role approver")
		}
	}
}

func (n *Node) namesNobody(ctx context.Context, to Notices, why, do string) {
	n.cfg.Log.WarnContext(ctx, "a receiver of notices names somebody who can approve nothing", slog.String("receiver", to.Receiver.Name()), slog.String("reason", why), slog.String("do", do))
}
