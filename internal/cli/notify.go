package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/notices"
)

// alertReceivers are those of alerts.
func alertReceivers(c config.Config) (out []notify.Receiver) {
	for _, o := range []notify.Options{
		{Name: "webhook", Kind: "webhook", URL: c.AlertWebhook, Secret: c.AlertSecret, Server: egress.Server{Name: "the webhook", Address: "alert_webhook (--alert-webhook)", Secret: "alert_webhook_secret"}},
		{Name: "slack", Kind: "slack", URL: c.AlertSlack, Server: egress.Server{Name: "Slack", Address: "alert_slack"}},
	} {
		if o.URL != "" {
			o.Now = time.Now
			o.Server.Unaffected, o.Server.Try, o.Server.Quiet = "alerts are kept for it, and a running writ tries again each minute", "writ admin alerts test", true
			out = append(out, notify.New(o))
		}
	}
	return out
}

// auditReceiver is that of the record; nil: none.
func auditReceiver(c config.Config) notify.Receiver {
	if c.AuditStream == "" {
		return nil
	}
	return notify.New(notify.Options{
		Name: "audit_stream", Kind: "webhook", URL: c.AuditStream, Secret: c.AuditStreamSecret, Now: time.Now,
		Server: egress.Server{Name: "the receiver of the record", Unaffected: "the record is kept, and a running writ tries again", Address: "audit_stream (--audit-stream)", Secret: "audit_stream_secret", Quiet: true},
	})
}

// noticeReceivers are those of notices, and whose approvals each is told of.
func noticeReceivers(c config.Config) (out []node.Notices) {
	for _, n := range c.Notices {
		at := "notices." + n.Name
		for name, to := range n.Receivers() {
			one := node.Notices{For: notices.For{Tenant: n.Tenant, Users: n.Users, Roles: n.Roles}}
			one.Receiver = notify.New(notify.Options{
				Name: name, Kind: n.Kind, URL: n.URL, Secret: n.Secret, From: n.From, To: to, Now: time.Now,
				Server: egress.Server{
					Name: "notices." + name, Unaffected: "approvals wait in the console, and a running writ tries again", Address: at + ".url", Secret: at + ".secret",
					Try: "writ notify test " + name, Quiet: true,
				},
			})
			out = append(out, one)
		}
	}
	return out
}

var notifyRows = []row{
	{use: "test [NAME]", short: "Send a test to all receivers of notices, or to one", make: notifyTest},
}

func notifyTest(c *command) {
	c.withConfig(func(cfg config.Config, args []string) (answer, error) {
		var all []notify.Receiver
		var names []string
		for _, n := range noticeReceivers(cfg) {
			names = append(names, n.Receiver.Name())
			if len(args) == 0 || n.Receiver.Name() == args[0] {
				all = append(all, n.Receiver)
			}
		}
		switch {
		case len(names) == 0:
			return answer{}, usage(errors.New("nobody is told of approvals that wait: add notices to writ.yaml (docs/approvals.md#being-told), or name its file with --config"))
		case len(all) == 0:
			return answer{}, usage(fmt.Errorf("notices has no receiver %s, only %s", args[0], strings.Join(names, ", ")))
		}
		return tested(c.Context(), all, notices.Test(cfg.Public(), time.Now()))
	}, config.NoticesKey)
}

// tested sends a message to receivers, and tells who has taken it.
func tested(ctx context.Context, all []notify.Receiver, m notify.Message) (answer, error) {
	told, errs := map[string]string{}, []error{}
	for _, r := range all {
		told[r.Name()] = "taken"
		if err := r.Send(ctx, m); err != nil {
			told[r.Name()] = err.Error()
			errs = append(errs, err)
		}
	}
	return answer{data: told, note: fmt.Sprintf("%d of %d have taken it\n", len(all)-len(errs), len(all))}, errors.Join(errs...)
}
