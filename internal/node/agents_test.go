package node

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

const (
	saysAgents   = "agents in force"
	saysNoAgents = "the agents were not put in force; those that were stay"
)

// TestAgentsDirectory: the agents of a directory are in force at the start and after a
// change, also one that was made while nobody ran; what is broken is said, at a SIGHUP
// again, and changes nothing.
func TestAgentsDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.yaml")
	write := func(text string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	inForce := func(n *Node) (int64, string) {
		rows, _ := n.directory.Rows("system")
		if rows.Registry == nil {
			return 0, ""
		}
		return rows.Registry.Revision, rows.Registry.Digest
	}
	cfg, log := config(t.TempDir()), newMessages()
	cfg.Log, cfg.Agents = log.logger(), dir
	var first string
	t.Run("while it runs", func(t *testing.T) {
		n := open(t, cfg)
		run(t, n)
		if revision, _ := inForce(n); revision != 0 || n.AgentsLine() != "" {
			t.Errorf("an empty directory is revision %d, %q", revision, n.AgentsLine())
		}
		write("name: shop\ndescription: Sells.\n")
		log.wait(t, saysAgents, 1)
		var revision int64
		revision, first = inForce(n)
		if want := "agents of " + dir + ": shop"; revision != 1 || n.AgentsLine() != want {
			t.Errorf("revision %d, %q", revision, n.AgentsLine())
		}
		write("name: shop\ndescription: Sells.\nsub_agents: [nobody]\n")
		log.wait(t, saysNoAgents, 1)
		write("name: shop\nabout: Sells.\n")
		log.wait(t, saysNoAgents, 2)
		must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		log.wait(t, saysNoAgents, 3)
		if revision, digest := inForce(n); revision != 1 || digest != first {
			t.Errorf("revision %d %s after a broken one", revision, digest)
		}
	})
	write("name: shop\ndescription: Sells all.\n")
	n := open(t, cfg)
	run(t, n)
	if revision, digest := inForce(n); revision != 2 || digest == first {
		t.Errorf("revision %d %s after a change while nobody ran", revision, digest)
	}
}
