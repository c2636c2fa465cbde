package bus

import "time"

// Hurry gives a lease shorter times.
func (l *Lease) Hurry(renew, stood time.Duration) { l.renew, l.stood = renew, stood }
