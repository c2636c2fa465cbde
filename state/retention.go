package state

import (
	"slices"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Keys of a tenant's data that say for how long its documents are kept: its own,
// and, of system, what counts for tenants and indices of which nothing is said.
const (
	RetentionKey        = "retention"
	DefaultRetentionKey = "retention_default"
)

// retention is one that was in force for a tenant. All of them are kept, in the order
// of the records: they alone prove which documents may be missing, so that a lost
// document cannot be passed off as one that was removed by age.
type retention struct {
	Since time.Time         `json:"since"`
	Days  storage.Retention `json:"days"`
}

// everyTenant is where the default of all is kept: no tenant has this name.
const everyTenant = ""

// legalRetention judges a tenant's data if that is a retention.
func legalRetention(data *catalog.Data, tenant string) error {
	if data == nil || data.Key != RetentionKey && data.Key != DefaultRetentionKey {
		return nil
	}
	if data.Key == DefaultRetentionKey && tenant != systemTenant {
		return illegal("/intent/args/data/key", "is of tenant system alone")
	}
	if _, pointer, reason := storage.ParseRetention(data.Value); reason != "" {
		return illegal("/intent/args/data/value"+pointer, reason)
	}
	return nil
}

// foldRetention remembers a retention. What was put under its name before it
// meant one, and is none, is that nothing is said.
func (s *State) foldRetention(data catalog.Data, tenant string, at time.Time) {
	switch data.Key {
	case RetentionKey:
	case DefaultRetentionKey:
		if tenant != systemTenant {
			return
		}
		tenant = everyTenant
	default:
		return
	}
	days, _, reason := storage.ParseRetention(data.Value)
	if reason != "" {
		days = nil
	}
	said := s.retained[tenant]
	if n := len(said); n > 0 && said[n-1].Since.After(at) {
		at = said[n-1].Since // the clock went back
	}
	s.retained[tenant] = append(said, retention{at, days})
}

// keptDays of an index at a time; 0: for good.
func (s *State) keptDays(tenant, index string, at time.Time) int {
	for _, who := range []string{tenant, everyTenant} {
		said := s.retained[who]
		i := slices.IndexFunc(said, func(r retention) bool { return r.Since.After(at) })
		if i < 0 {
			i = len(said)
		}
		if i == 0 {
			continue
		}
		if days, ok := said[i-1].Days[index]; ok {
			return days
		}
	}
	return 0
}

// removeLate is how much longer than promised a document is kept: a record that
// keeps it for longer may be on its way.
const removeLate = 10 * time.Minute

// Outdated is the time before which a tenant's documents of an index are to be
// removed; zero: they are kept for good.
func (s *State) Outdated(tenant, index string, now time.Time) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return before(now.Add(-removeLate), s.keptDays(tenant, index, now))
}

// Removed is the time before which a tenant's documents of an index may have been
// removed by any retention up to now; zero: none may. It never goes back, so that
// what was removed is not made again where documents are kept for longer by now.
func (s *State) Removed(tenant, index string, now time.Time) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ends := []time.Time{now}
	for _, who := range []string{tenant, everyTenant} {
		for _, r := range s.retained[who] {
			if r.Since.Before(now) {
				ends = append(ends, r.Since)
			}
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	var latest, from time.Time
	for _, end := range ends {
		if t := before(end, s.keptDays(tenant, index, from)); t.After(latest) {
			latest = t
		}
		from = end
	}
	return latest
}

// before is so many days before a time; zero without any.
func before(at time.Time, days int) time.Time {
	if days == 0 {
		return time.Time{}
	}
	return at.AddDate(0, 0, -days)
}
