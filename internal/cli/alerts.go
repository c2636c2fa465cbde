package cli

import (
	"errors"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/monitor"
)

var alertRows = []row{
	{use: "list", short: "Show current and past alerts, and the figures of the last hour", make: alertsList},
	{use: "test", short: "Send a test to all receivers of alerts", make: alertsTest},
}

// alertsView is the output of `writ admin alerts list --json`.
type alertsView struct {
	Figures   monitor.Figures    `json:"figures"`
	Incidents []monitor.Incident `json:"incidents"`
}

// Window is how long the figures are of.
func (v alertsView) Window() string {
	return clock.Words(v.Figures.Until.Sub(v.Figures.Since).Round(time.Minute))
}

func alertsList(c *command) {
	c.dataFlag()
	c.answer = func([]string) (answer, error) {
		v := alertsView{Incidents: []monitor.Incident{}}
		figures, incidents, err := monitor.ReadStored(c.dir)
		if err != nil {
			return answer{}, err
		}
		v.Figures, v.Incidents = figures, append(v.Incidents, incidents...)
		v.Figures.Skills, v.Figures.Agents = append([]monitor.SkillFigure{}, figures.Skills...), append([]monitor.AgentFigure{}, figures.Agents...)
		return answer{data: v, text: render("alerts.table", v)}, nil
	}
}

func alertsTest(c *command) {
	c.withConfig(func(cfg config.Config, _ []string) (answer, error) {
		all := alertReceivers(cfg)
		if len(all) == 0 {
			return answer{}, usage(errors.New("nobody gets alerts: set alert_webhook or alert_slack"))
		}
		test := monitor.Incident{Rule: "Test", Severity: monitor.Ticket, Says: "this is a test", Do: "nothing", Observed: "writ admin alerts test", Since: time.Now()}
		return tested(c.Context(), all, test.Message())
	}, "alert_webhook_secret", "alert_slack")
}
