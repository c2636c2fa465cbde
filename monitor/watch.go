package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/notify"
)

// every is how often a watch looks.
const every = time.Minute

// Incident is an alert from its beginning to its end.
type Incident struct {
	Rule     string     `json:"rule"`
	Severity string     `json:"severity"`
	Says     string     `json:"says"`
	Do       string     `json:"do"`
	Observed string     `json:"seen"` // when it began
	Since    time.Time  `json:"since"`
	Until    *time.Time `json:"until,omitempty"` // nil: it lasts
	// Owed are the receivers that have not taken its beginning or its end yet.
	Owed []string `json:"owed,omitempty"`
}

// state is what a watch retains over a restart, in its file.
type state struct {
	Figures   Figures    `json:"figures"` // of the last hour
	Incidents []Incident `json:"incidents"`
}

// maxIncidents is how many ended incidents are retained for people.
const maxIncidents = 100

// Watch checks figures periodically, and notifies receivers of alerts: once when one begins, and
// once when it ends.
//
// Crash: an incident is in the file, with the receivers that it is owed to, before anybody is
// notified. A crash between a notification and its write notifies twice, and never not at all.
type Watch struct {
	*Recent
	Process   func() Process
	Receivers []notify.Receiver
	Dir       string // of the file alerts.json

	mu   sync.Mutex // guards what follows
	last Figures
}

// Last returns the figures of the last look, of an hour.
func (w *Watch) Last() Figures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "the monitor could not look; it looks again in a minute", slog.String("error", err.Error()))
		}
		if clock.Sleep(ctx, every) != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

// Look is one round: figures, alerts, notifications.
func (w *Watch) Look(ctx context.Context) error {
	now := w.Now().UTC()
	if err := w.Count(ctx); err != nil {
		return err
	}
	of := map[time.Duration]Figures{}
	for _, r := range Rules {
		if _, ok := of[r.Window]; !ok {
			f := w.within(now.Add(-storeLag), r.Window)
			f.Process = w.Process()
			of[r.Window] = f
		}
	}
	w.mu.Lock()
	w.last = of[hour]
	w.mu.Unlock()

	var s state
	if _, err := durable.ReadJSON(alertsFile(w.Dir), &s); err != nil {
		return err
	}
	s.Figures = of[hour]
	for _, r := range Rules {
		w.judge(ctx, &s, r, of[r.Window], now)
	}
	if err := durable.WriteJSON(alertsFile(w.Dir), s); err != nil {
		return err
	}
	return w.notify(ctx, &s)
}

// judge begins and ends the incident of a rule.
func (w *Watch) judge(ctx context.Context, s *state, r Rule, f Figures, now time.Time) {
	i := slices.IndexFunc(s.Incidents, func(x Incident) bool { return x.Rule == r.Name && x.Until == nil })
	switch seen, firing := r.Firing(f); {
	case firing && i < 0:
		s.Incidents = append(s.Incidents, Incident{Rule: r.Name, Severity: r.Severity, Says: r.Says, Do: r.Do, Observed: seen, Since: now, Owed: w.names()})
		w.Log.WarnContext(ctx, "alert", slog.String("rule", r.Name), slog.String("severity", r.Severity), slog.String("says", r.Says), slog.String("seen", seen), slog.String("do", r.Do))
	case !firing && i >= 0:
		s.Incidents[i].Until = &now
		unheard := s.Incidents[i].Owed // of its beginning: they need not hear that it is over
		s.Incidents[i].Owed = slices.DeleteFunc(w.names(), func(name string) bool { return slices.Contains(unheard, name) })
		w.Log.InfoContext(ctx, "alert is over", slog.String("rule", r.Name))
	}
	if over := len(s.Incidents) - maxIncidents; over > 0 {
		s.Incidents = slices.DeleteFunc(s.Incidents, func(x Incident) bool {
			drop := over > 0 && x.Until != nil && len(x.Owed) == 0
			if drop {
				over--
			}
			return drop
		})
	}
}

func (w *Watch) names() (out []string) {
	for _, r := range w.Receivers {
		out = append(out, r.Name())
	}
	return out
}

// notify sends what is owed. A receiver that fails is tried again at the next look.
func (w *Watch) notify(ctx context.Context, s *state) error {
	var errs []error
	for i := range s.Incidents {
		x := &s.Incidents[i]
		for _, r := range w.Receivers {
			at := slices.Index(x.Owed, r.Name())
			if at < 0 {
				continue
			}
			if err := r.Send(ctx, x.Message()); err != nil {
				errs = append(errs, fmt.Errorf("alert %s is owed to %s: %w", x.Rule, r.Name(), err))
				continue
			}
			x.Owed = slices.Delete(x.Owed, at, at+1)
			if err := durable.WriteJSON(alertsFile(w.Dir), s); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

func alertsFile(dir string) string { return filepath.Join(dir, "alerts.json") }

// ReadStored returns the figures and incidents that a watch has left in a directory, the newest
// first.
func ReadStored(dir string) (Figures, []Incident, error) {
	var s state
	there, err := durable.ReadJSON(alertsFile(dir), &s)
	if err == nil && !there {
		err = errors.New("no monitor has looked at this directory: start writ up on it")
	}
	slices.SortStableFunc(s.Incidents, func(a, b Incident) int { return cmp.Compare(b.Since.UnixNano(), a.Since.UnixNano()) })
	return s.Figures, s.Incidents, err
}
