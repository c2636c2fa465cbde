package recorder

import "aob.dev/writ/state"

// Held returns the counts of the recorder's own state.
func (r *Recorder) Held() state.Stats { return r.state.Stats() }

// PublicMembers are what may be published of an event's payload.
var PublicMembers = publicMembers
