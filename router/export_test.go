package router

// Quiet waits until no intent is being executed in the background.
func (r *Router) Quiet() { r.running.Wait() }
