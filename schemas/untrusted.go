package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Bounds of a foreign schema: manifests of skills, return_specs.
const (
	MaxForeignSize  = 256 << 10 // bytes
	MaxForeignDepth = 64        // nesting; the root is 1
	MaxForeignNodes = 4096      // objects and arrays: the compiler is quadratic in them
)

// Compile compiles a foreign schema. It fetches nothing: a $ref must stay within the document.
// Formats are annotations, as in 2020-12. Neither Compile nor validation with the result panics.
// Validation ends after a bounded number of steps, retains a bounded number of findings and
// waits for no other validation. Results are cached; safe for concurrent use.
func Compile(source []byte) (*Schema, error) {
	if len(source) > MaxForeignSize {
		return nil, fmt.Errorf("schema has more than %d bytes", MaxForeignSize)
	}
	sum := sha256.Sum256(source)
	if s, ok := foreign.Get(sum); ok {
		return s, nil
	}
	s, err := compileForeign(slices.Clone(source), "sha256:"+hex.EncodeToString(sum[:]))
	if err != nil {
		return nil, err
	}
	foreign.Add(sum, s)
	return s, nil
}

func compileForeign(source []byte, id string) (*Schema, error) {
	tree, err := Decode(source)
	if err != nil {
		return nil, errors.New("schema is not JSON")
	}
	nodes := 0
	if err := measure(tree, 1, &nodes); err != nil {
		return nil, err
	}
	first, err := newMachine(tree)
	if err != nil {
		return nil, err
	}
	all := &machines{tree: tree, idle: []*machine{first}}
	return &Schema{id: id, source: source, tree: tree, compiled: first.schema, machines: all}, nil
}

// measure refuses trees that are too deep, have too many nodes, or contain a number that no
// double can represent: the compiler would expand 1e999999.
func measure(v any, depth int, nodes *int) error {
	var children []any
	switch v := v.(type) {
	case json.Number:
		if !reasonable(string(v)) {
			return errors.New("schema has a number that is out of range")
		}
		return nil
	case []any:
		children = v
	case map[string]any:
		for _, x := range v {
			children = append(children, x)
		}
	default:
		return nil
	}
	if *nodes++; *nodes > MaxForeignNodes {
		return fmt.Errorf("schema has more than %d objects and arrays", MaxForeignNodes)
	}
	if depth > MaxForeignDepth {
		return fmt.Errorf("schema is deeper than %d", MaxForeignDepth)
	}
	for _, x := range children {
		if err := measure(x, depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

// cached is the number of cached foreign schemas: a tenant's skills and the return_specs of the
// running plans.
const cached = 512

var foreign, _ = lru.New[[32]byte, *Schema](cached) // fails only for size 0
