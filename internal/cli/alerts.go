package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/monitor"
)

// receivers are those of a configuration.
func receivers(c config.Config) (out []monitor.Receiver, err error) {
	if c.AlertWebhook != "" {
		out = append(out, monitor.Webhook{URL: c.AlertWebhook, Secret: c.AlertSecret, Now: time.Now})
	}
	if c.AlertSlack != "" {
		out = append(out, monitor.Slack{URL: c.AlertSlack})
	}
	if c.AlertEmail != "" {
		e, err := monitor.ParseEmail(c.AlertEmail, c.AlertPassword, time.Now)
		if err != nil {
			return nil, fmt.Errorf("alert_email: %w", err)
		}
		out = append(out, e)
	}
	return out, nil
}

var alertRows = []row{
	{use: "list", short: "Show what is wrong now, and what was", make: alertsList},
	{use: "silence RULE", short: "Tell nobody of a rule for a time", make: alertsSilence},
	{use: "test", short: "Send a test to everybody who gets alerts", make: alertsTest},
}

// alertsView is what `writ alerts list --json` prints.
type alertsView struct {
	Figures   monitor.Figures    `json:"figures"`
	Incidents []monitor.Incident `json:"incidents"`
	Silences  []monitor.Silence  `json:"silences"`
}

func alertsList(c *command) {
	c.dataFlag()
	c.answer = func([]string) (answer, error) {
		v := alertsView{Incidents: []monitor.Incident{}, Silences: []monitor.Silence{}}
		figures, incidents, err := monitor.Stored(c.dir)
		if err != nil {
			return answer{}, err
		}
		v.Figures, v.Incidents = figures, append(v.Incidents, incidents...)
		silences, err := monitor.Silences(c.dir)
		v.Silences = append(v.Silences, silences...)
		return answer{data: v, text: alertsText(v)}, err
	}
}

func alertsText(v alertsView) string {
	f := v.Figures
	text := fmt.Sprintf("looked at %s, over %s\n\n", f.Until.UTC().Format(time.RFC3339), f.Until.Sub(f.Since).Round(time.Minute)) + aligned(func(t io.Writer) {
		fmt.Fprintf(t, "plans\t%d, complete at once %d, replans %d, exhausted %d\n", f.Plans, f.AtOnce, f.Replans, f.Exhausted)
		fmt.Fprintf(t, "skills\t%d calls, %d large answers\n", f.Calls, f.Large)
		for _, s := range f.Skills {
			fmt.Fprintf(t, "  %s\t%d calls, %d failed\n", printable(s.Skill), s.Calls, s.Failed)
		}
		fmt.Fprintf(t, "scripts\t%d, %d out of time\n", f.Scripts, f.Timeouts)
		fmt.Fprintf(t, "memory\t%d writes, %d not as promised, longest lock %d ms\n", f.Writes, f.Violations, f.LockWaitMS)
		for _, a := range f.Agents {
			fmt.Fprintf(t, "  %s\t%d ended, p95 %d ms\n", a.Agent, a.Ended, a.P95MS)
		}
	}) + "\n"
	if f.Cut {
		text += "there were too many events to read all: scripts, locks and times are of the newest\n\n"
	}
	now := 0
	for _, i := range v.Incidents {
		if i.Until == nil {
			now++
			text += fmt.Sprintf("%s (%s) since %s: %s. Seen: %s.\n→ %s\n", i.Rule, i.Severity, i.Since.UTC().Format(time.RFC3339), i.Says, printable(i.Seen), i.Do)
		}
	}
	if now == 0 {
		text += "no alert\n"
	}
	for _, i := range v.Incidents {
		if i.Until != nil {
			text += fmt.Sprintf("over: %s, %s to %s\n", i.Rule, i.Since.UTC().Format(time.RFC3339), i.Until.UTC().Format(time.RFC3339))
		}
	}
	for _, s := range v.Silences {
		text += fmt.Sprintf("silent: %s until %s\n", s.Rule, s.Until.UTC().Format(time.RFC3339))
	}
	return text
}

func alertsSilence(c *command) {
	c.dataFlag()
	for _, r := range monitor.Rules {
		c.ValidArgs = append(c.ValidArgs, r.Name)
	}
	length := c.Flags().Duration("for", 2*time.Hour, "how long; 0 ends a silence")
	c.answer = func(args []string) (answer, error) {
		now := time.Now()
		until := now.Add(*length)
		if err := monitor.Silent(c.dir, args[0], until, now); err != nil {
			return answer{}, usage(fmt.Errorf("%w: the rules are %s", err, strings.Join(c.ValidArgs, ", ")))
		}
		return answer{data: monitor.Silence{Rule: args[0], Until: until}, note: fmt.Sprintf("nobody is told of %s until %s\n", args[0], until.UTC().Format(time.RFC3339))}, nil
	}
}

func alertsTest(c *command) {
	load := c.configFlags()
	c.answer = func([]string) (answer, error) {
		cfg, err := load()
		if err != nil {
			return answer{}, err
		}
		all, err := receivers(cfg)
		if err != nil {
			return answer{}, malformed(err)
		}
		if len(all) == 0 {
			return answer{}, usage(errors.New("nobody gets alerts: set alert_webhook, alert_slack or alert_email"))
		}
		told, errs := map[string]string{}, []error{}
		for _, r := range all {
			told[r.Name()] = "taken"
			if err := r.Send(c.Context(), monitor.Incident{Rule: "Test", Severity: monitor.Ticket, Says: "this is a test", Do: "nothing", Seen: "writ alerts test", Since: time.Now()}); err != nil {
				told[r.Name()] = err.Error()
				errs = append(errs, fmt.Errorf("%s: %w", r.Name(), err))
			}
		}
		return answer{data: told, note: fmt.Sprintf("%d of %d have taken it\n", len(all)-len(errs), len(all))}, errors.Join(errs...)
	}
}
