package schemas

import (
	_ "embed" // the document is data
	"encoding/json"
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI is the OpenAPI 3.1 document of the router's and the gateway's HTTP
// interfaces, distinguished by the tags of their operations.
func OpenAPI() json.RawMessage { return openAPI }
