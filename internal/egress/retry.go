package egress

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter reads how long a server asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date (RFC 9110); 0 where it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.Atoi(h.Get("Retry-After-Ms")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	after := h.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil && s > 0 {
		return time.Duration(min(s, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
