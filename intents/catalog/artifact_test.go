package catalog

import (
	"encoding/json"
	"strings"
)

func init() {
	hex := "sha256:" + strings.Repeat("0", 64)
	examples["artifact.put"] = example{
		[]any{ArtifactPut{Data: json.RawMessage(`"a"`), MediaType: "text/plain", Name: "a.txt"}, ArtifactPut{From: "cas://" + hex}},
		[]any{ArtifactPutResult{Artifact: "cas://" + hex, SizeBytes: 1, MediaType: "text/plain", Name: "a.txt"}, ArtifactPutResult{Artifact: "cas://" + hex}},
	}
	examples["artifact.get"] = example{
		[]any{ArtifactGet{Artifact: "cas://" + hex}},
		[]any{ArtifactGetResult{Artifact: "cas://" + hex, SizeBytes: 1, URL: "/agent/artifacts/" + hex, ExpiresAt: at}},
	}
}
