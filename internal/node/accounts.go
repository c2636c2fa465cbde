package node

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

var instance = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Accounts is what a NATS cluster must be told of processes, each as ROLE:NAME, with a
// name of its own. The key of each connection is a seed in the directory dir: it is made
// if there is none, so that processes may be added later. made are the files of new ones.
// outside are external executors with their types: each has one key, whatever the number of
// its processes.
func Accounts(processes []string, outside map[string][]string, dir string) (config []byte, made []string, err error) {
	var members []natsserver.Member
	var outsiders []natsserver.External
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if !datadir.Executors.Named(name) {
			return nil, nil, fmt.Errorf("executor %q: a vendor's executor is called x-<vendor> or x-<vendor>-<name>", name)
		}
		file := filepath.Join(dir, name+".seed")
		public, isNew, err := seedIn(file)
		if err != nil {
			return nil, nil, err
		}
		if isNew {
			made = append(made, file)
		}
		outsiders = append(outsiders, natsserver.External{Name: name, NKey: public, Types: outside[name]})
	}
	seen := map[string]bool{}
	for _, p := range processes {
		role, name, _ := strings.Cut(p, ":")
		named := instance.MatchString(name)
		if role == natsserver.Hearer {
			named = datadir.EventReaders.Named(name)
		}
		if !named || seen[p] {
			return nil, nil, fmt.Errorf("process %q: write ROLE:NAME, with a name of its own of a-z, 0-9, _ and -; hearers are called TENANT_NAME", p)
		}
		seen[p] = true
		asks, serves, err := natsserver.Connections(role, executorTypes())
		if err != nil {
			return nil, nil, fmt.Errorf("process %q: there is no role %q: roles are gateway, frames, manager, planner, task, workflow, router, recorder, teller, hearer and the executors of writ catalog", p, role)
		}
		m := natsserver.Member{Role: role, Instance: bus.EventReader(name)} // only readers have dots
		for _, c := range []struct {
			there  bool
			suffix string
			public *string
		}{{asks, "asks", &m.Asks}, {serves, "serves", &m.Serves}} {
			if !c.there {
				continue
			}
			file := seedFile(dir, role, name, c.suffix)
			var isNew bool
			if *c.public, isNew, err = seedIn(file); err != nil {
				return nil, nil, err
			}
			if isNew {
				made = append(made, file)
			}
		}
		members = append(members, m)
	}
	config, err = natsserver.Cluster(executorTypes(), members, outsiders...)
	return config, made, err
}

// seedIn is the public key of the seed in a file, which is made if it is not there.
func seedIn(file string) (public string, made bool, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		seed, public, err := bus.NewNKey()
		if err == nil {
			err = durable.MkdirAll(filepath.Dir(file))
		}
		if err == nil {
			err = durable.Write(file, []byte(seed+"\n"))
		}
		return public, true, err
	}
	if err == nil {
		if public, err = bus.PublicNKey(strings.TrimSpace(string(raw))); err != nil {
			err = fmt.Errorf("%s: %w: remove it, and a new one is made", file, err)
		}
	}
	return public, false, err
}
