package intents

import (
	"bytes"
	"slices"
)

// arrange makes canonical what differs from it only in the order of members, as
// encoding/json writes our structs. It moves whole members and changes none of
// their bytes, so what it gives says the same; of all else it says that it cannot.
func arrange(raw []byte) ([]byte, bool) {
	a := arranger{scanner: scanner{b: raw}, out: make([]byte, 0, len(raw))}
	ok := a.arrange(1) && a.i == len(raw)
	return a.out, ok
}

// arranger copies what it scans.
type arranger struct {
	scanner
	out []byte
}

// member of an object, in out: from its name to the end of its value.
type member struct {
	name     name
	from, to int
}

func (a *arranger) arrange(depth int) bool {
	switch {
	case a.i < len(a.b) && a.b[a.i] == '{':
		return depth <= MaxDepth && a.members(depth)
	case a.i < len(a.b) && a.b[a.i] == '[':
		return depth <= MaxDepth && a.elements(depth)
	}
	start := a.i
	ok := a.value(depth)
	a.out = append(a.out, a.b[start:a.i]...)
	return ok
}

func (a *arranger) elements(depth int) bool {
	a.copy('[')
	for first := true; !a.copy(']'); first = false {
		if !first && !a.copy(',') || !a.arrange(depth+1) {
			return false
		}
	}
	return true
}

// members of an object, sorted behind it where they do not ascend. An empty last
// element, as in [1,], ends in a value that is none.
func (a *arranger) members(depth int) bool {
	a.copy('{')
	var room [16]member
	list, base, sorted := room[:0], len(a.out), true
	for first := true; !a.copy('}'); first = false {
		if !first && !a.copy(',') {
			return false
		}
		start, from := a.i, len(a.out)
		text, ok := a.text()
		a.out = append(a.out, a.b[start:a.i]...)
		if !ok || !a.copy(':') || !a.arrange(depth+1) {
			return false
		}
		this := nameOf(text)
		sorted = sorted && (first || list[len(list)-1].name.compare(this) < 0)
		list = append(list, member{this, from, len(a.out)})
	}
	return sorted || a.sort(list, base)
}

// sort puts members, which end out, in order. None may stand twice.
func (a *arranger) sort(list []member, base int) bool {
	before := bytes.Clone(a.out[base:])
	slices.SortFunc(list, func(x, y member) int { return x.name.compare(y.name) })
	a.out = a.out[:base]
	for i, m := range list {
		if i > 0 {
			if list[i-1].name.compare(m.name) >= 0 {
				return false
			}
			a.out = append(a.out, ',')
		}
		a.out = append(a.out, before[m.from-base:m.to-base]...)
	}
	a.out = append(a.out, '}')
	return true
}

// copy consumes one byte, if it is c.
func (a *arranger) copy(c byte) bool {
	ok := a.next(c)
	if ok {
		a.out = append(a.out, c)
	}
	return ok
}
