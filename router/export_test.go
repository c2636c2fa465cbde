package router

// Quiet waits until nothing is carried out any more that nobody waits for.
func (r *Router) Quiet() { r.running.Wait() }
