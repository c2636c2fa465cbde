package state

import (
	"slices"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Keys of a tenant's data for the retention of documents: those of the tenant and, of tenant
// system, the default for tenants and indices without a retention of their own.
const (
	RetentionKey        = "retention"
	DefaultRetentionKey = "retention_default"
)

// retention is one that was in force for a tenant. All of them are retained, in the order of the
// records: only they prove which documents may be missing, so that a lost document cannot be
// passed off as one that was removed by age.
type retention struct {
	Since time.Time         `json:"since"`
	Days  storage.Retention `json:"days"`
}

// everyTenant is the key of the default in State.retained: no tenant has this name.
const everyTenant = ""

// legalRetention judges a tenant's data if it is a retention.
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

// applyRetention records a retention, which was judged before.
func (s *State) applyRetention(data catalog.Data, tenant string, at time.Time) {
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
	days, _, _ := storage.ParseRetention(data.Value)
	all := s.retained[tenant]
	if n := len(all); n > 0 && all[n-1].Since.After(at) {
		at = all[n-1].Since // the clock stepped back
	}
	s.retained[tenant] = append(all, retention{at, days})
}

// keptDays returns the retention of an index at a time; 0: unlimited.
func (s *State) keptDays(tenant, index string, at time.Time) int {
	for _, who := range []string{tenant, everyTenant} {
		all := s.retained[who]
		i := slices.IndexFunc(all, func(r retention) bool { return r.Since.After(at) })
		if i < 0 {
			i = len(all)
		}
		if i == 0 {
			continue
		}
		if days, ok := all[i-1].Days[index]; ok {
			return days
		}
	}
	return 0
}

// removeLate is how much longer than its retention a document is retained: a record that extends
// the retention may be on its way.
const removeLate = 10 * time.Minute

// RetentionCutoff is the time before which a tenant's documents of an index are to be removed;
// zero: they are retained for good.
func (s *State) RetentionCutoff(tenant, index string, now time.Time) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return before(now.Add(-removeLate), s.keptDays(tenant, index, now))
}

// RemovedBefore is the time before which a tenant's documents of an index may have been removed
// by any retention up to now; zero: none may. It never goes back, so that removed documents are
// not made again after the retention was extended.
func (s *State) RemovedBefore(tenant, index string, now time.Time) time.Time {
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

// before is a number of days before a time; zero for no days.
func before(at time.Time, days int) time.Time {
	if days == 0 {
		return time.Time{}
	}
	return at.AddDate(0, 0, -days)
}
