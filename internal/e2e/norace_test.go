//go:build !race

package e2e

// raced says that the race detector watches.
const raced = false
