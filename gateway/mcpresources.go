package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// Resources and prompts of skill servers. The server's name makes their names unlike those of all
// others: writ://<server>/<the server's own URI>, and <server>.<prompt>.
const serverScheme = "writ://"

// mcpLists are the methods for which the servers are asked what they offer, and listsAge how old
// their answer may be: each is an intent. listsTime bounds the wait for one.
var mcpLists = []wire.MCPMethod{wire.MethodResourcesList, wire.MethodResourcesTemplatesList, wire.MethodPromptsList, wire.MethodPromptsGet}

const (
	listsAge  = time.Minute
	listsTime = 10 * time.Second
)

// reader reads from one server under the approval of catalog.ReadSkill.
type reader struct {
	s      *mcpServer
	skill  string // its id
	server string
}

// readersOf separates the skills that are tools from those that stand for resources and prompts.
func (s *mcpServer) readersOf(skills []catalog.Manifest) (tools []catalog.Manifest, readers []reader) {
	for _, m := range skills {
		if name, ok := strings.CutSuffix(m.Name, "."+catalog.ReadSkill); ok {
			readers = append(readers, reader{s, m.Name, name})
		} else {
			tools = append(tools, m)
		}
	}
	return tools, readers
}

// uri is the address of a server's resource here.
func (r reader) uri(own string) string { return serverScheme + r.server + "/" + own }

// read has an intent read for a client.
func (r reader) read(ctx context.Context, args catalog.ResourceRead) (called catalog.SkillCallResult, err error) {
	of, _ := ctx.Value(mcpRequestKey{}).(*mcpRequest)
	session := r.s.defaultSession
	if c := server.ClientSessionFromContext(ctx); c != nil && c.SessionID() != "" {
		session = c.SessionID()
	}
	args.Skill = r.skill
	a, err := r.s.servers.skills.readResource(ctx, of.actor, session, args)
	if err != nil {
		return called, err
	}
	if p := problem.OfAnswer(a); p != nil {
		return called, p
	}
	err = json.Unmarshal(a.Outcome.Result, &called)
	return called, err
}

// parts are those of an answer, with their bytes. An answer without parts is its output as a text.
func (r reader) parts(ctx context.Context, called catalog.SkillCallResult) (parts []map[string]any, err error) {
	if called.Content == nil {
		if called.Reference != nil {
			return nil, problem.New(intents.OversizedOutput, "", "it is too large for a policy, or for a result")
		}
		var text string
		if json.Unmarshal(called.Output, &text) != nil {
			text = string(called.Output)
		}
		return []map[string]any{{"text": text, "mimeType": "text/plain"}}, nil
	}
	left := int64(maxReadContent)
	for _, raw := range called.Content {
		var part map[string]any
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, err
		}
		of, member := catalog.PartBytes(part)
		if f, ok := fileOf(of[member]); ok {
			if left -= f.SizeBytes; left < 0 {
				return nil, problem.New(intents.OversizedOutput, "", "it has more than 24 MiB")
			}
			if err := r.s.servers.g.fill(ctx, r.s.caller().tenant, of, member, f); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// contents is a part of a resource that is sent as its JSON.
type contents struct {
	wire.ResourceContents
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (c contents) MarshalJSON() ([]byte, error) { return c.raw, nil }

// resource reads a resource of the server by its address here.
func (r reader) resource(ctx context.Context, req wire.ReadResourceRequest) (out []wire.ResourceContents, err error) {
	own := strings.TrimPrefix(req.Params.URI, r.uri(""))
	called, err := r.read(ctx, catalog.ResourceRead{URI: own})
	if err != nil {
		return nil, err
	}
	parts, err := r.parts(ctx, called)
	for _, part := range parts {
		uri, ok := part["uri"].(string)
		if !ok {
			uri = own
		}
		part["uri"] = r.uri(uri)
		raw, merr := json.Marshal(part)
		err = errors.Join(err, merr)
		out = append(out, contents{wire.TextResourceContents{}, raw})
	}
	return out, err
}

// prompt fills in a prompt of the server.
func (r reader) prompt(p wire.Prompt) server.ServerPrompt {
	own := p.Name
	p.Name = r.server + "." + own
	return server.ServerPrompt{Prompt: p, Handler: func(ctx context.Context, req wire.GetPromptRequest) (*wire.GetPromptResult, error) {
		called, err := r.read(ctx, catalog.ResourceRead{Prompt: own, Arguments: req.Params.Arguments})
		if err != nil {
			return nil, err
		}
		parts, err := r.parts(ctx, called)
		if err != nil {
			return nil, err
		}
		out := &wire.GetPromptResult{Description: p.Description, Messages: []wire.PromptMessage{}}
		for _, part := range parts {
			role, content := wire.RoleUser, part["content"]
			if part["role"] == string(wire.RoleAssistant) {
				role = wire.RoleAssistant
			}
			if content == nil { // a masked output
				content = map[string]any{"type": "text", "text": part["text"]}
			}
			raw, err := json.Marshal(content)
			if err != nil {
				return nil, err
			}
			out.Messages = append(out.Messages, wire.PromptMessage{Role: role, Content: sent{wire.TextContent{}, raw}})
		}
		return out, nil
	}}
}

// offers are the resources, templates and prompts of all servers, as last listed.
type offers struct {
	at        time.Time
	digest    string
	resources []server.ServerResource
	templates []server.ServerResourceTemplate
	prompts   []server.ServerPrompt
}

// list asks the servers what they offer. A server that does not answer, or whose reading waits for
// people, offers nothing for now.
func (s *mcpServer) list(ctx context.Context) {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.renewing.Lock()
	readers, was, now := s.readers, s.offers, s.servers.g.cfg.Now()
	s.renewing.Unlock()
	if now.Before(was.at.Add(listsAge)) && now.After(was.at.Add(-listsAge)) {
		return
	}
	lists := make([]catalog.ResourceLists, len(readers))
	var asked sync.WaitGroup
	for i, r := range readers {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, listsTime)
			defer cancel()
			var err error
			if lists[i], err = r.lists(ctx); err != nil {
				s.servers.g.cfg.Log.InfoContext(ctx, "a skill server's resources and prompts are not offered", slog.String("server", r.server), slog.String("error", err.Error()))
			}
		})
	}
	asked.Wait()
	raw, _ := json.Marshal(lists) // they were JSON
	next := offers{at: now, digest: intents.Digest(raw)}
	for i, r := range readers {
		next.add(r, lists[i])
	}
	s.renewing.Lock()
	defer s.renewing.Unlock()
	if s.offers = next; next.digest != was.digest {
		s.offerContent()
	}
}

// offerContent tells the clients of all resources and prompts. Guarded by renewing.
func (s *mcpServer) offerContent() {
	templates := []server.ServerResourceTemplate{{
		Template: wire.NewResourceTemplate(fileScheme+"{intent}/{part}", "result", wire.WithTemplateDescription("A part of a result that is too large for it.")),
		Handler:  s.file,
	}}
	for _, r := range s.readers {
		templates = append(templates, server.ServerResourceTemplate{
			Template: wire.NewResourceTemplate(r.uri("{+uri}"), r.server, wire.WithTemplateDescription("Any resource of "+r.server+", by its URI there.")), Handler: r.resource,
		})
	}
	s.rpc.SetResources(append(resources(s.documents), s.offers.resources...)...)
	s.rpc.SetResourceTemplates(append(templates, s.offers.templates...)...)
	s.rpc.SetPrompts(s.offers.prompts...)
}

// file reads a part of a result.
func (s *mcpServer) file(ctx context.Context, req wire.ReadResourceRequest) ([]wire.ResourceContents, error) {
	of, _ := ctx.Value(mcpRequestKey{}).(*mcpRequest)
	part, err := s.servers.g.readFile(ctx, of.actor, req.Params.URI)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(part)
	return []wire.ResourceContents{contents{wire.TextResourceContents{}, raw}}, err
}

// lists reads the lists of a server.
func (r reader) lists(ctx context.Context) (lists catalog.ResourceLists, err error) {
	called, err := r.read(ctx, catalog.ResourceRead{})
	if err != nil {
		return lists, err
	}
	raw := []byte(called.Output)
	if called.Reference != nil {
		parts, err := r.parts(ctx, called)
		if err != nil || len(parts) != 1 {
			return lists, errors.Join(err, errors.New("its lists are too large"))
		}
		text, _ := parts[0]["text"].(string)
		raw = []byte(text)
	}
	return lists, json.Unmarshal(raw, &lists)
}

// add adds what a server lists; entries that no client could read are left out.
func (o *offers) add(r reader, lists catalog.ResourceLists) {
	for _, raw := range lists.Resources {
		var x wire.Resource
		if json.Unmarshal(raw, &x) == nil {
			x.URI = r.uri(x.URI)
			o.resources = append(o.resources, server.ServerResource{Resource: x, Handler: r.resource})
		}
	}
	for _, raw := range lists.Templates {
		var x wire.ResourceTemplate
		if json.Unmarshal(raw, &x) == nil && x.URITemplate != nil {
			quoted, _ := json.Marshal(r.uri(x.URITemplate.Raw())) // a text
			if x.URITemplate.UnmarshalJSON(quoted) == nil {
				o.templates = append(o.templates, server.ServerResourceTemplate{Template: x, Handler: server.ResourceTemplateHandlerFunc(r.resource)})
			}
		}
	}
	for _, raw := range lists.Prompts {
		var x wire.Prompt
		if json.Unmarshal(raw, &x) == nil {
			o.prompts = append(o.prompts, r.prompt(x))
		}
	}
}
