package reads

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"aob.dev/writ/monitor"
)

// figures are those of a tenant, read at most once a minute whatever the number of requests.
type figures struct {
	reading singleflight.Group
	mu      sync.Mutex // guards all
	all     map[string]monitor.Figures
}

func (s *figures) read(tenant string, now time.Time, read func() (monitor.Figures, error)) (monitor.Figures, error) {
	s.mu.Lock()
	maps.DeleteFunc(s.all, func(_ string, f monitor.Figures) bool { return now.Sub(f.Until).Abs() >= time.Minute })
	f, ok := s.all[tenant]
	s.mu.Unlock()
	if ok {
		return f, nil
	}
	got, err, _ := s.reading.Do(tenant, func() (any, error) {
		f, err := read()
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.all == nil {
				s.all = map[string]monitor.Figures{}
			}
			s.all[tenant] = f
		}
		return f, err
	})
	f, _ = got.(monitor.Figures)
	return f, err
}
