package intents

import "time"

// BreakerTerms say when breakers open and close. The record holds them, so that every
// router and auditor applies the same.
type BreakerTerms struct {
	Failures int   `json:"failures"` // in a row that open one; 0: there are no breakers
	ResetMS  int64 `json:"reset_ms"` // that an open one refuses all
	Probes   int   `json:"probes"`   // that may be sent then
	ProbeMS  int64 `json:"probe_ms"` // within which one of them has to succeed
}

// DefaultBreakers are in force until a record gives others.
var DefaultBreakers = BreakerTerms{Failures: 5, ResetMS: 30_000, Probes: 3, ProbeMS: 60_000}

// Reset is how long an open breaker refuses all.
func (t BreakerTerms) Reset() time.Duration { return time.Duration(t.ResetMS) * time.Millisecond }

// Probing is how long a round of probes lasts.
func (t BreakerTerms) Probing() time.Duration { return time.Duration(t.ProbeMS) * time.Millisecond }

// BreakerMark is the state of the skill server's breaker for an intent.
type BreakerMark string

// Marks of intents.
const (
	BreakerPasses  BreakerMark = ""
	BreakerProbes  BreakerMark = "probe" // it shows whether the server works again
	BreakerRefuses BreakerMark = "open"  // nothing is sent
)

// Transport is how the exchange with a skill server went, as its executor reports. An answer is no
// failure, whatever its content.
type Transport struct {
	Sent    bool `json:"sent"` // the server may have seen the call
	Failure bool `json:"failure"`
}
