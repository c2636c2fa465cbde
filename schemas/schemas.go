// Package schemas holds the JSON Schema 2020-12 documents of everything that
// crosses a boundary, and their one compiler.
//
//	envelope.schema.json          the envelope of an intent, https://aob.dev/schemas/envelope.json
//	intents/<type>.json           the arguments of an intent type, …/schemas/intents/<type>.json
//	intents/<type>.result.json    its result, …/schemas/intents/<type>.result.json
//	storage/<index>.json          the documents of an index, …/schemas/storage/<index>.json
//	transient.schema.json         texts beside an envelope, https://aob.dev/schemas/transient.json
//	plan, session, soul, return_spec, agent, policy_input (.schema.json): shared by several of them
//	handle_message, handle_message_result (.schema.json): arguments and result of remote agents
//
// Every object of ours is closed. A document that breaks its schema gives [Violation]s: where,
// as a JSON Pointer (RFC 6901), and why, in text that never contains a value of the document.
// [Compile] takes foreign schemas, within bounds; [CompileShape] the shorthand of return_spec.
package schemas

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Base is the common beginning of every $id.
const Base = "https://aob.dev/schemas/"

//go:embed *.schema.json intents/*.json storage/*.json
var files embed.FS

// library is every embedded document by $id and the compiler that knows them all.
type library struct {
	docs map[string]document

	mu       sync.Mutex // compiler and compiled; the compiler is not safe for concurrent use
	compiler *jsonschema.Compiler
	compiled map[string]*Schema
}

type document struct {
	source json.RawMessage
	tree   any
}

var embedded = sync.OnceValues(load)

// load reads the embedded documents. Nothing is compiled yet: most processes
// need a few of them only.
func load() (*library, error) {
	l := &library{docs: map[string]document{}, compiled: map[string]*Schema{}, compiler: newCompiler()}
	l.compiler.AssertFormat()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		tree, err := Decode(source)
		if err != nil {
			return fmt.Errorf("%s: %v", path, err)
		}
		id := Base + strings.Replace(path, ".schema.json", ".json", 1)
		if object, ok := tree.(map[string]any); !ok || object["$id"] != id {
			return fmt.Errorf("%s: $id is not %s", path, id)
		}
		l.docs[id] = document{source: source, tree: tree}
		return l.compiler.AddResource(id, tree)
	})
	return l, err
}

// newCompiler makes a compiler that fetches nothing: a $ref to a document that
// was not added is an error.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(jsonschema.SchemeURLLoader{})
	return c
}

// document finds an embedded document by $id.
func (l *library) document(id string) (document, error) {
	doc, ok := l.docs[id]
	if !ok {
		return document{}, fmt.Errorf("schemas: no schema %q", id)
	}
	return doc, nil
}

// Source is the text of an embedded schema by $id. The schema is not compiled, which takes a
// hundred times as long as to find it.
func Source(id string) (json.RawMessage, error) {
	l, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("schemas: %w", err)
	}
	doc, err := l.document(id)
	return doc.source, err
}

// Lookup finds an embedded schema by $id and compiles it on first use. Safe for
// concurrent use.
func Lookup(id string) (*Schema, error) {
	l, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("schemas: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.compiled[id]; ok {
		return s, nil
	}
	doc, err := l.document(id)
	if err != nil {
		return nil, err
	}
	compiled, err := l.compiler.Compile(id)
	if err != nil {
		return nil, fmt.Errorf("schemas: %v", err)
	}
	s := &Schema{id: id, source: doc.source, tree: doc.tree, compiled: compiled}
	l.compiled[id] = s
	return s, nil
}

// Unsigned is the schema of the signed part of an envelope: that of the transmitted document, envelope.json,
// without sig and transient.
func Unsigned() *Schema { return unsigned() }

var unsigned = sync.OnceValue(func() *Schema {
	s, err := unsignedSchema()
	if err != nil {
		panic(err) // embedded at build time; TestEverySchemaCompiles fails first
	}
	return s
})

func unsignedSchema() (*Schema, error) {
	published, err := Lookup(Base + "envelope.json")
	if err != nil {
		return nil, err
	}
	tree, err := Decode(published.source)
	if err != nil {
		return nil, err
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("schemas: envelope.json is not an object")
	}
	required, _ := root["required"].([]any)
	root["required"] = slices.DeleteFunc(required, func(name any) bool { return name == "sig" })
	if members, ok := root["properties"].(map[string]any); ok {
		delete(members, "sig")
		delete(members, "transient")
	}
	const id = Base + "unsigned.json"
	root["$id"] = id
	source, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	c := newCompiler()
	c.AssertFormat()
	if err := c.AddResource(id, tree); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(id)
	if err != nil {
		return nil, err
	}
	return &Schema{id: id, source: source, tree: tree, compiled: compiled}, nil
}

// IntentArgs is the schema of an intent type's arguments.
func IntentArgs(typ string) (*Schema, error) { return Lookup(Base + "intents/" + typ + ".json") }

// IntentResult is the schema of an intent type's result.
func IntentResult(typ string) (*Schema, error) {
	return Lookup(Base + "intents/" + typ + ".result.json")
}

// Storage is the schema of an index's documents.
func Storage(index string) (*Schema, error) { return Lookup(Base + "storage/" + index + ".json") }
