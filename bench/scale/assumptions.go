package scale

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Assumption is a figure that nobody has measured here.
type Assumption struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Meaning string  `json:"meaning"`
}

// Assumptions are all of them; their order is that of reading.
type Assumptions []Assumption

// DefaultAssumptions is what is assumed unless somebody says otherwise.
func DefaultAssumptions() Assumptions {
	return Assumptions{
		{"round_trip_us", 500, "µs of the network between two machines, there and back; each way takes half to one and a half times its half"},
		{"service_ms", 20, "ms that what an executor asks (a skill server, a script) takes, always the same"},
		{"agent_seconds", 5, "seconds from one intent of an agent to its next"},
		{"tenants", 10_000, "number of tenants; a tenant lives in one cell"},
		{"zipf", 0.5, "exponent: the k-th tenant signs 1/k^zipf of what the first does"},
		{"utilisation", 0.6, "share of its saturation up to which a cell, a core or a disk is used"},
		{"machine_cores", 8, "cores of the largest machine for writ up"},
		{"router_cores", 4, "cores of a router, of which one follows the journal"},
		{"executor_cores", 4, "cores of a process of executors, without what they ask"},
		{"recorder_cores", 2, "cores of a recorder; a cell has one at work and one that waits"},
		{"nats_cores", 4, "cores of a NATS server; a cell has three"},
		{"search_cores", 8, "cores of an OpenSearch data node"},
		{"search_documents", 5000, "documents a second that an OpenSearch data node writes"},
		{"search_disk_gb", 4000, "GB of disk of an OpenSearch data node"},
		{"search_copies", 2, "copies of each document"},
		{"memory_gb_per_core", 2, "GB of memory of each core, before keys and state"},
		{"days", 30, "days at this load whose records and documents the disks hold"},
		{"price_core", 25, "of a core a month"},
		{"price_memory_gb", 3, "of a GB of memory a month"},
		{"price_disk_gb", 0.1, "of a GB of disk a month"},
		{"price_network_gb", 0.01, "of a GB over the network"},
	}
}

// Set takes NAME=VALUE. Values are above 0; some are bounded by what can be.
func (a Assumptions) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	i := slices.IndexFunc(a, func(x Assumption) bool { return x.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no assumption %q; --json lists them", name)
	}
	least, most := math.SmallestNonzeroFloat64, 1e9
	switch name {
	case "utilisation":
		least, most = 0.05, 1
	case "tenants":
		least, most = 1, 1e6
	case "router_cores":
		least, most = 2, 1e3
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= least && v <= most) {
		return fmt.Errorf("%s: %q is not a number from %g to %g", name, value, least, most)
	}
	a[i].Value = v
	return nil
}

// Value is the value of one that there is.
func (a Assumptions) Value(name string) float64 {
	return a[slices.IndexFunc(a, func(x Assumption) bool { return x.Name == name })].Value
}
