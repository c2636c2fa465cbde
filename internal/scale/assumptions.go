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
	Name    string
	Value   float64
	Meaning string
}

// The names of assumptions.
const (
	roundTrip       = "round_trip_us"
	serviceTime     = "service_ms"
	agentTime       = "agent_seconds"
	tenantsIn       = "tenants"
	zipf            = "zipf"
	utilisation     = "utilisation"
	machineCores    = "machine_cores"
	routerCores     = "router_cores"
	executorCores   = "executor_cores"
	recorderCores   = "recorder_cores"
	natsCores       = "nats_cores"
	searchCores     = "search_cores"
	searchDocuments = "search_documents"
	searchDisk      = "search_disk_gb"
	searchCopies    = "search_copies"
	coreMemory      = "memory_gb_per_core"
	kept            = "kept_days"
	priceCore       = "price_core"
	priceMemory     = "price_memory_gb"
	priceDisk       = "price_disk_gb"
	priceNetwork    = "price_network_gb"
)

// Assumptions are all of them; their order is that of reading.
type Assumptions []Assumption

// Assumed is what is assumed unless somebody says otherwise.
func Assumed() Assumptions {
	return Assumptions{
		{roundTrip, 500, "µs of the network between two machines, there and back"},
		{serviceTime, 20, "ms that what an executor asks (a skill server, a script) takes, always the same"},
		{agentTime, 5, "seconds from one order of an agent to its next"},
		{tenantsIn, 10_000, "number of tenants; a tenant lives in one cell"},
		{zipf, 0.5, "exponent: the k-th tenant orders 1/k^zipf of what the first does"},
		{utilisation, 0.6, "share of its saturation that a cell, or a core, is used up to"},
		{machineCores, 8, "cores of the largest machine for writ up"},
		{routerCores, 4, "cores of a router, of which one follows the journal"},
		{executorCores, 4, "cores of a machine of executors, without what they ask"},
		{recorderCores, 2, "cores of a recorder; a cell has one at work and one that waits"},
		{natsCores, 4, "cores of a NATS server; a cell has three"},
		{searchCores, 8, "cores of an OpenSearch data node"},
		{searchDocuments, 5000, "documents a second that an OpenSearch data node writes"},
		{searchDisk, 4000, "GB of disk of an OpenSearch data node"},
		{searchCopies, 2, "copies of each document"},
		{coreMemory, 2, "GB of memory of each core, before keys and state"},
		{kept, 30, "days that journal and documents are kept on disk"},
		{priceCore, 25, "of a core a month"},
		{priceMemory, 3, "of a GB of memory a month"},
		{priceDisk, 0.1, "of a GB of disk a month"},
		{priceNetwork, 0.01, "of a GB over the network"},
	}
}

// Set takes NAME=VALUE. Values are above 0; the utilisation is below 1.
func (a Assumptions) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	i := slices.IndexFunc(a, func(x Assumption) bool { return x.Name == name })
	if i < 0 {
		var names []string
		for _, x := range a {
			names = append(names, x.Name)
		}
		return fmt.Errorf("there is no assumption %q, only %s", name, strings.Join(names, ", "))
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) || name == utilisation && v >= 1 {
		return fmt.Errorf("%s: %q is not a number above 0 that it can have", name, value)
	}
	a[i].Value = v
	return nil
}

// of is the value of an assumption that there is.
func (a Assumptions) of(name string) float64 {
	return a[slices.IndexFunc(a, func(x Assumption) bool { return x.Name == name })].Value
}
