package agentic

import (
	"context"

	"aob.dev/writ/bus"
)

// Manager accepts turns and runs their plans: planner, one task per step, replans, the answer. It
// never touches a skill.
type Manager struct{ *dispatch }

// NewManager requires the manager's key.
func NewManager(cfg Config) *Manager {
	return &Manager{newDispatch(cfg, "manager", func(r *Run) strategy {
		c := &conversation{Run: r}
		if r.plan.Agent != "" {
			return newAgentRun(c)
		}
		return &plannedRun{conversation: c}
	})}
}

// Serve accepts dispatches until ctx ends.
func (m *Manager) Serve(ctx context.Context, ready chan<- struct{}) error {
	return m.serve(ctx, bus.Service{
		Description: "drives plans", Endpoints: map[string]bus.Handler{
			bus.ClientPlans:        answer(m.cfg.Log, m.client),
			bus.Produce("manager"): answer(m.cfg.Log, m.produce),
			bus.Prompts:            answer(m.cfg.Log, m.prompt),
		},
	}, ready)
}
