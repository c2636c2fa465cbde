package natstest

// Way is how one client reaches the servers of a cluster. It can be cut off from all of them.
type Way []*link

// Way of a client that uses no other one.
func (c *Cluster) Way() (w Way) {
	c.t.Helper()
	for _, to := range c.clients {
		l := newLink(c.t)
		l.aim(to.addr)
		w = append(w, l)
	}
	return w
}

// Cut the client off from all servers. Mend ends that.
func (w Way) Cut() { w.set(true) }

// Mend ends Cut.
func (w Way) Mend() { w.set(false) }

func (w Way) set(cut bool) {
	for _, l := range w {
		l.set(cut)
	}
}

// URLs of the servers for the client.
func (w Way) URLs() []string { return urls(w) }

func urls(links []*link) (urls []string) {
	for _, l := range links {
		urls = append(urls, "nats://"+l.addr)
	}
	return urls
}
