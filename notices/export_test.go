package notices

// Later is how many attempts are remembered.
func (n *Notices) Later() int { return len(n.later) }
