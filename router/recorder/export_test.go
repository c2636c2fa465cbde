package recorder

import "aob.dev/writ/router"

// Held is what the recorder's own fold of plans holds.
func (r *Recorder) Held() router.Held { return r.fold.Held() }
