package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var artifactRows = []Row{
	{Type: "artifact.put", Title: "Keep data for good", Capability: "artifacts:write", Signers: []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleGateway}, Executor: "artifacts", Effect: Idempotent, DataAt: "/data"},
	{Type: "artifact.get", Title: "Get an address to read an artifact at", Capability: "artifacts:read", Signers: askersAndOperators, Executor: "artifacts", Effect: Pure},
}

// ArtifactPut are the arguments of artifact.put: exactly one of Data and From. A
// string is stored as text, anything else as JSON. Its name and
// type are in the record: bytes have one digest under any name.
type ArtifactPut struct {
	Data      json.RawMessage `json:"data,omitempty"`
	From      string          `json:"from,omitempty"`
	MediaType string          `json:"media_type,omitempty"`
	Name      string          `json:"name,omitempty"`
}

// ArtifactPutResult is the result of artifact.put.
type ArtifactPutResult struct {
	Artifact  string `json:"artifact"` // cas://sha256:<hex>
	SizeBytes int64  `json:"size_bytes"`
	MediaType string `json:"media_type,omitempty"`
	Name      string `json:"name,omitempty"`
}

// ArtifactGet are the arguments of artifact.get.
type ArtifactGet struct {
	Artifact string `json:"artifact"` // cas://sha256:<hex>, of the actor's tenant
}

// ArtifactGetResult is the result of artifact.get. URL is a path of the gateway
// that returns the bytes to any bearer, by GET, before ExpiresAt.
type ArtifactGetResult struct {
	Artifact  string    `json:"artifact"`
	SizeBytes int64     `json:"size_bytes"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"` // whole seconds
}
