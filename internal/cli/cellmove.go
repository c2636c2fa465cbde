package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
)

// cellMoveTenant moves a tenant. The configuration that all commands have is the old cell's.
func cellMoveTenant(c *command) {
	load := c.configFlags(config.Every)
	file := c.Flags().String("to-config", "", "configuration file of the new cell")
	instance := c.Flags().String("to-instance", "", "name of the process in the new cell (default: that in the old one)")
	wait := c.Flags().Duration("wait", 10*time.Minute, "how long what is open may take to end")
	stay := c.Flags().Bool("stay", false, "take back that the tenant leaves, as long as it has not arrived")
	c.answer = func(args []string) (answer, error) {
		from, err := load()
		if err != nil {
			return answer{}, err
		}
		to, err := c.configOf(*file)
		if err != nil {
			return answer{}, err
		}
		to.Instance = cmp.Or(*instance, from.Instance)
		m := node.Moving{Tenant: args[0], Wait: *wait, Tell: func(format string, args ...any) { fmt.Fprintf(c.std.Err, format+"\n", args...) }}
		if m.From, err = c.cellAt(from, c.configFile(), args[1]); err != nil {
			return answer{}, err
		}
		if m.To, err = c.cellAt(to, *file, args[2]); err != nil {
			return answer{}, err
		}
		if *stay {
			return answer{data: node.Moved{Tenant: m.Tenant}, text: m.Tenant + " stays\n"}, node.StayTenant(c.Context(), m)
		}
		moved, err := node.MoveTenant(c.Context(), m)
		if err != nil {
			return answer{}, err
		}
		return answer{data: moved, text: movedText(moved), note: "next: send its clients to the new cell, and see docs/deploy.md (A tenant moves) for what has not moved\n"}, nil
	}
	c.mustGive("to-config")
}

// cellAt is a cell that the command is a process of. Its data directory is kept, so that a later
// run begins with the snapshot of an earlier one.
func (c *command) cellAt(cfg config.Config, file, dir string) (node.CellAt, error) {
	n, err := c.ofCell(cfg, file, dir)
	n.Dir = filepath.Join(dir, "mover")
	return node.CellAt{Config: n, Dir: dir}, err
}

// configOf reads the configuration in a file, which no flag changes.
func (c *command) configOf(file string) (config.Config, error) {
	cfg, err := config.Load(file, c.std.Env)
	if err != nil {
		return cfg, malformed(err)
	}
	if err := cfg.Validate(); err != nil {
		return cfg, usage(fmt.Errorf("%s: %w", file, err))
	}
	if cfg, err = cfg.Resolve(c.std.Env, config.Every); err != nil {
		err = malformed(err)
	}
	return cfg, err
}

func movedText(m node.Moved) string {
	text := fmt.Sprintf("%s has moved\nfrom  %s, record %d\nto    %s, record %d\nwith  %d orders, %d documents, %d blobs\n", m.Tenant, m.From, m.Left, m.To, m.Came, m.Orders, m.Documents, m.Blobs)
	if len(m.Schedules) > 0 {
		text += fmt.Sprintf("left  %d schedules, which their users make again: %s\n", len(m.Schedules), strings.Join(m.Schedules, ", "))
	}
	return text
}
