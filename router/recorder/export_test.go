package recorder

import "aob.dev/writ/state"

// Held is what the recorder's own fold of plans holds.
func (r *Recorder) Held() state.Held { return r.fold.Held() }

// PublicMembers are what may be published of an event's payload.
var PublicMembers = publicMembers
