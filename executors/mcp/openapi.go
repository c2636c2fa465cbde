package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"aob.dev/writ/internal/visible"
)

// An OpenAPI document makes an HTTP API a server of tools: each operation is one. All that decides
// which request a call sends is in the tool's annotations, and so part of the digest that is
// approved. Servers, security schemes, links and callbacks of the document are not used.

// maxDocument bounds an OpenAPI document, in bytes.
const maxDocument = 16 << 20

// maxOperation bounds the name of an operation in bytes, so that clients which put a prefix before
// it keep to 64.
const maxOperation = 53

// bodyInput is the member of a tool's input that is the request's body.
const bodyInput = "body"

// request describes the HTTP requests of an operation.
type request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`             // a template
	In     map[string]string `json:"in,omitempty"`     // where the members of the input go: path, query, header or body
	Joined []string          `json:"joined,omitempty"` // lists of the query that are one value, with commas
}

// operationTool is a tool as tools/list would have it. Without a request it is not offered.
type operationTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema,omitempty"`
	Annotations struct {
		Request *request `json:"request,omitempty"`
	} `json:"annotations"`
	NotOffered string `json:"notOffered,omitempty"`
}

// operationTools reads a document and returns its operations as tools, by path and method.
func operationTools(file string, header http.Header) (tools []json.RawMessage, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: the operator names it
	if err != nil {
		return nil, err
	}
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxDocument)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw) // refuses references to other documents
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") {
		return nil, fmt.Errorf("%s is no OpenAPI document of version 3", file)
	}
	items := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(items)) {
		operations := items[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			o := operation{doc: doc, method: method, path: path, item: items[path], Operation: operations[method], header: header}
			tool, err := json.Marshal(o.tool())
			if err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", file, method, path, err)
			}
			tools = append(tools, tool)
		}
	}
	return tools, nil
}

// operation is one that is made a tool.
type operation struct {
	*openapi3.Operation
	doc          *openapi3.T
	item         *openapi3.PathItem
	method, path string
	header       http.Header // which the operator sets
}

var notOperation = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// name depends on the operation alone, so that it stays whatever else the document has.
func (o *operation) name() string {
	id := cmp.Or(o.OperationID, strings.ToLower(o.method)+o.path)
	name := strings.Trim(notOperation.ReplaceAllString(id, "_"), "_")
	if len(name) <= maxOperation && name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return name[:min(len(name), maxOperation-9)] + "_" + hex.EncodeToString(sum[:4])
}

func (o *operation) tool() (t operationTool) {
	t.Name = o.name()
	about := strings.TrimSpace(o.Summary + "\n\n" + o.Description)
	t.Description = strings.TrimSpace(about + "\n\n" + o.method + " " + o.path)
	schema, req, err := o.input()
	if err != nil {
		t.NotOffered = err.Error()
		return t
	}
	t.InputSchema, t.Annotations.Request = schema, req
	return t
}

// Methods that are offered.
var methods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodHead, http.MethodOptions}

// placeholder is a parameter in the template of a path.
var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// input returns the schema of the tool's input, and what becomes of it. An error says why the
// operation is not offered.
func (o *operation) input() (map[string]any, *request, error) {
	req := &request{Method: o.method, Path: o.path, In: map[string]string{}}
	if !slices.Contains(methods, o.method) {
		return nil, nil, fmt.Errorf("no request by %s is sent", visible.Line(o.method, 20))
	}
	if !strings.HasPrefix(o.path, "/") || strings.ContainsAny(o.path, "?#\\%") {
		return nil, nil, errors.New(`its path must begin with / and have none of ? # \ %`)
	}
	in := inputSchema{properties: map[string]any{}, schemas: schemaReader{doc: o.doc, defs: map[string]any{}}}
	for _, p := range o.parameters() {
		if err := o.addParameter(&in, req, p); err != nil {
			return nil, nil, err
		}
	}
	for _, found := range placeholder.FindAllStringSubmatch(o.path, -1) {
		if req.In[found[1]] != openapi3.ParameterInPath {
			return nil, nil, fmt.Errorf("its path names {%s}, which is no parameter of the path", visible.Line(found[1], maxName))
		}
	}
	if o.RequestBody != nil && o.RequestBody.Value != nil {
		if err := addBody(&in, req, o.RequestBody.Value); err != nil {
			return nil, nil, err
		}
	}
	schema, err := in.schema()
	return schema, req, err
}

// parameters are those of the operation, and those of its path that it does not replace.
func (o *operation) parameters() (out []*openapi3.Parameter) {
	seen := map[[2]string]bool{}
	for _, list := range []openapi3.Parameters{o.Parameters, o.item.Parameters} {
		for _, ref := range list {
			if p := ref.Value; p != nil && !seen[[2]string{p.In, p.Name}] {
				seen[[2]string{p.In, p.Name}] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// styles of parameters that are sent, by their place; the first is that of one that names none.
var styles = map[string]string{openapi3.ParameterInPath: openapi3.SerializationSimple, openapi3.ParameterInQuery: openapi3.SerializationForm, openapi3.ParameterInHeader: openapi3.SerializationSimple}

func (o *operation) addParameter(in *inputSchema, req *request, p *openapi3.Parameter) error {
	shown := visible.Line(p.Name, maxName)
	switch style := styles[p.In]; {
	case p.In == openapi3.ParameterInCookie, p.In == openapi3.ParameterInHeader && !o.settable(p.Name):
		return nil // the operator's headers, or nobody, sets it
	case style == "" || p.Style != "" && p.Style != style || p.Schema == nil:
		return fmt.Errorf("the parameter %s has a form that is not sent", shown)
	case p.Schema.Value != nil && (p.Schema.Value.Type.Is("object") || len(p.Schema.Value.Properties) > 0):
		return fmt.Errorf("the parameter %s is an object", shown)
	case req.In[p.Name] != "" || p.Name == "" || p.Name == bodyInput:
		return fmt.Errorf("the name of the parameter %s is taken", shown)
	}
	if p.Explode != nil && !*p.Explode && p.In == openapi3.ParameterInQuery {
		req.Joined = append(req.Joined, p.Name)
	}
	req.In[p.Name] = p.In
	return in.add(p.Name, p.Description, p.Required || p.In == openapi3.ParameterInPath, p.Schema)
}

// forbidden are headers, beside the reserved ones, that no parameter sets.
var forbidden = []string{"Authorization", "Cookie", "Forwarded", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override"}

// settable reports whether a parameter may set a header.
func (o *operation) settable(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return headerName.MatchString(name) && !slices.Contains(reserved, name) && !slices.Contains(forbidden, name) &&
		!strings.HasPrefix(name, "Proxy-") && !strings.HasPrefix(name, "X-Forwarded-") && o.header[name] == nil
}

func addBody(in *inputSchema, req *request, b *openapi3.RequestBody) error {
	types := slices.Sorted(maps.Keys(b.Content))
	i := slices.IndexFunc(types, isJSON)
	if i < 0 {
		return fmt.Errorf("its request body is %s, and only JSON is sent", visible.Line(strings.Join(types, ", "), maxName))
	}
	req.In[bodyInput] = bodyInput
	return in.add(bodyInput, b.Description, b.Required, b.Content[types[i]].Schema)
}

// isJSON reports whether a media type is JSON.
func isJSON(media string) bool {
	media = mimeType(media)
	return media == "application/json" || strings.HasSuffix(media, "+json")
}
