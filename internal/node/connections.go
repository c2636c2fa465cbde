package node

import (
	"sync"

	"aob.dev/writ/bus"
)

// connections to the bus, one for each user of it. Services that a start has begun look them up
// while later steps of that start add theirs. The zero value has none. Safe for concurrent use.
type connections struct {
	mu     sync.Mutex
	byUser map[string]bus.Conn
}

func (c *connections) add(user string, conn bus.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUser == nil {
		c.byUser = map[string]bus.Conn{}
	}
	c.byUser[user] = conn
}

// of returns the connection of a user, or nil.
func (c *connections) of(user string) bus.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byUser[user]
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.byUser {
		conn.Close()
	}
}
