package cell

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

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

var instance = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Accounts makes the configuration of a NATS cluster for processes, each given as ROLE:NAME with a
// unique name. The key of each connection is a seed in the directory dir, made if it is missing, so
// that processes may be added later. made lists the files of new seeds. outside are external
// executors with their types: each has one key for any number of processes.
func Accounts(processes []string, outside map[string][]string, dir string) (config []byte, made []string, err error) {
	var members []natsserver.Member
	var outsiders []natsserver.External
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if !datadir.Executors.Valid(name) {
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
			named = datadir.EventReaders.Valid(name)
		}
		if !named || seen[p] {
			return nil, nil, fmt.Errorf("process %q: write ROLE:NAME, with a name of its own of a-z, 0-9, _ and -; hearers are called TENANT_NAME", p)
		}
		seen[p] = true
		asks, serves, err := natsserver.Connections(role, catalog.Executors())
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
	config, err = natsserver.Cluster(catalog.Executors(), members, outsiders...)
	return config, made, err
}

// seedIn returns the public key of the seed in a file, and makes the file if it is missing.
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
