package cli

import (
	"fmt"
	"os"
	"strings"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/upkeep"
)

func agentProbe(c *command) {
	c.answer = func(args []string) (answer, error) {
		cfg, err := config.Load("", c.std.Env)
		if err != nil {
			return answer{}, malformed(err)
		}
		check := upkeep.AgentCheck{Endpoint: args[0], Timeout: mcp.DefaultTimeout, Named: egress.Transport(args[0]), Public: egress.Transport(cfg.AgentHosts...)}
		if len(args) > 1 {
			if check.File, err = os.ReadFile(args[1]); err != nil {
				return answer{}, malformed(err)
			}
		}
		points := check.Run(c.Context())
		p := painter(c.std, c.std.Out)
		marks := map[string]string{upkeep.PointPass: p.green("pass"), upkeep.PointFail: p.red("FAIL"), upkeep.PointUnknown: "  ? "}
		var text strings.Builder
		count := map[string]int{}
		for _, x := range points {
			count[x.State]++
			fmt.Fprintf(&text, "%s %2d  %s%s\n", marks[x.State], x.Point, x.Title, found(x.Found))
			if x.Do != "" {
				fmt.Fprintf(&text, "         %s\n", x.Do)
			}
		}
		a := answer{text: text.String(), data: struct {
			Endpoint string              `json:"endpoint"`
			Points   []upkeep.AgentPoint `json:"points"`
		}{args[0], points}}
		a.note = fmt.Sprintf("%d points pass, %d fail, %d cannot be seen from here\n", count[upkeep.PointPass], count[upkeep.PointFail], count[upkeep.PointUnknown])
		if n := count[upkeep.PointFail]; n > 0 {
			a.end = fmt.Errorf("%d of %d points fail: mend them before people use this agent", n, len(points))
		}
		return a, nil
	}
}

// found is the finding about a point, in one line.
func found(text string) string {
	if text == "" {
		return ""
	}
	return ": " + printable(oneLine(text, 200))
}
