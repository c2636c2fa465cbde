package skills

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// read reads a resource or a prompt of a server, or its lists of both.
func (s *skills) read(ctx context.Context, o *executors.Intent, args catalog.ResourceRead) (*executors.Result, error) {
	if t := o.Ticket.Scope; t != nil && !slices.Contains(t.Skills, args.Skill) {
		return nil, executors.Fail(intents.TaskScope, "the step does not include the skill")
	}
	skill, pin, err := s.located(ctx, o, args.Skill)
	if err != nil {
		return nil, err
	}
	if skill.Name != catalog.ReadSkill {
		return nil, executors.Fail(intents.MalformedArgs, "only <server>."+catalog.ReadSkill+" reads resources and prompts")
	}
	args.Skill = ""
	input, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return s.send(ctx, invocation{intent: o, skill: skill, pin: pin, input: input}, "")
}

// maxContent bounds the content of an answer in its result, in bytes as JSON. What is larger is in
// the output alone.
const maxContent = 2 * storage.InlineLimit

// content makes the parts of an answer for clients that take more than text: the bytes of stored
// files, and texts that are too large for a result, are references. Nothing passes if an obligation
// changes or bounds the output, which says the same.
func (s *skills) content(ctx context.Context, in invocation, parts []mcp.Part, stored []storage.File) ([]json.RawMessage, error) {
	if len(parts) == 0 || !in.intent.Unobliged() {
		return nil, nil
	}
	scope, err := in.intent.Scope()
	if err != nil {
		return nil, nil //nolint:nilerr // without a step there are no files, and the output has it all
	}
	var out []json.RawMessage
	inline, size := storage.InlineLimit, 0
	for _, part := range parts {
		of, member := catalog.PartBytes(part.JSON)
		text, _ := of[member].(string)
		var file storage.File
		switch {
		case part.File > 0:
			file = stored[part.File-1]
		case len(text) < inline:
			inline -= len(text)
		default:
			if file, err = s.Blobs.Put(ctx, scope, strings.NewReader(text)); err != nil {
				return nil, executors.Store(err)
			}
		}
		if file.ID != "" {
			of[member] = catalog.ContentFile{FileID: file.ID, Plan: scope.Plan, Revision: scope.Revision, Step: scope.Step, SizeBytes: file.Size, SHA256: file.SHA256}
		}
		raw, err := json.Marshal(part.JSON)
		if size += len(raw); err != nil || size > maxContent {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}
