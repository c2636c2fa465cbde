package judge

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// Write writes the state so that Read reads it: the same state gives the same bytes.
// Commits that are remembered are not in it.
func (s *State) Write(w io.Writer) error {
	p := printer{w: bufio.NewWriter(w)}
	p.number(s.next)
	p.number(s.latest.UnixMilli())
	p.number(s.window.Cut)
	p.number(int64(len(s.window.Periods)))
	for _, x := range s.window.Periods {
		p.number(x.Number)
		p.number(x.First)
	}
	for position := s.window.Cut; position < s.next; position++ {
		p.place(position, s.places[position/chunk][position%chunk])
	}
	p.number(int64(len(s.stay)))
	for _, position := range slices.Sorted(maps.Keys(s.stay)) {
		p.number(position)
		p.place(position, s.stay[position])
	}
	p.number(int64(len(s.open)))
	for _, position := range slices.Sorted(maps.Keys(s.open)) {
		p.number(position)
		p.number(int64(s.open[position]))
	}
	p.number(int64(len(s.unknown)))
	for _, position := range slices.Sorted(maps.Keys(s.unknown)) {
		p.number(position)
	}
	writeHashes(&p, s.keys)
	writeHashes(&p, s.subjects)
	return cmp.Or(p.err, p.w.Flush())
}

// Read returns a written state. The error reports bytes that no State wrote;
// bytes changed afterwards may also be read, as a wrong state.
func Read(r *bytes.Reader) (*State, error) {
	p := parser{r: r}
	s := NewState()
	s.next = p.number()
	s.latest = time.UnixMilli(p.number()).UTC()
	s.window.Cut = p.number()
	for range p.count() {
		s.window.Periods = append(s.window.Periods, storage.Period{Number: p.number(), First: p.number()})
	}
	if s.window.Cut < 0 || s.window.Cut > s.next || s.next > maxNext || s.next-s.window.Cut > int64(r.Len()) {
		return nil, errImage
	}
	s.places = make([][]int64, (s.next+chunk-1)/chunk)
	for i := s.window.Cut / chunk; i < int64(len(s.places)); i++ {
		s.places[i] = make([]int64, chunk)
	}
	for position := s.window.Cut; position < s.next; position++ {
		s.places[position/chunk][position%chunk] = p.place(position)
	}
	for range p.count() {
		position := p.number()
		s.stay[position] = p.place(position)
	}
	for range p.count() {
		position := p.number()
		s.open[position] = int(p.number())
	}
	for range p.count() {
		s.unknown[p.number()] = true
	}
	s.keys, s.subjects = readHashes[storage.Key](&p), readHashes[digest](&p)
	return s, p.err
}

// maxNext bounds a plausible number of records.
const maxNext = 1 << 36

var errImage = errors.New("not the image of a journal's state")

// hash is a key or the digest of a subject.
type hash interface{ ~[16]byte }

// hashAt is a hash with its position.
type hashAt[K hash] struct {
	position int64
	hash     K
}

// writeHashes sorts by position, and by hash at one position.
func writeHashes[K hash](p *printer, all map[K]int64) {
	list := make([]hashAt[K], 0, len(all))
	for k, position := range all {
		list = append(list, hashAt[K]{position, k})
	}
	slices.SortFunc(list, func(a, b hashAt[K]) int {
		ka, kb := [16]byte(a.hash), [16]byte(b.hash)
		return cmp.Or(cmp.Compare(a.position, b.position), bytes.Compare(ka[:], kb[:]))
	})
	p.number(int64(len(list)))
	last := int64(0)
	for _, x := range list {
		p.number(x.position - last)
		last = x.position
		k := [16]byte(x.hash)
		p.bytes(k[:])
	}
}

func readHashes[K hash](p *parser) map[K]int64 {
	n := p.count()
	all := make(map[K]int64, n)
	position := int64(0)
	for range n {
		position += p.number()
		var k [16]byte
		p.bytes(k[:])
		all[K(k)] = position
	}
	return all
}

// printer writes numbers and bytes; err is the first error.
type printer struct {
	w   *bufio.Writer
	err error
	buf [binary.MaxVarintLen64]byte
}

func (p *printer) bytes(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
}

func (p *printer) number(v int64) { p.bytes(p.buf[:binary.PutVarint(p.buf[:], v)]) }

// place reads the place of an intent: an outcome comes after it, and what is no position is negative.
func (p *printer) place(position, place int64) {
	if place >= 0 {
		place -= position
	}
	p.number(place)
}

// parser reads what a printer wrote; err is the first error, and zeros follow it.
type parser struct {
	r   *bytes.Reader
	err error
}

func (p *parser) number() int64 {
	if p.err != nil {
		return 0
	}
	v, err := binary.ReadVarint(p.r)
	if err != nil {
		p.err = fmt.Errorf("%w: %w", errImage, err)
	}
	return v
}

// count reads how many follow: each takes a byte, so no more than there are bytes.
func (p *parser) count() int64 {
	n := p.number()
	if n < 0 || n > int64(p.r.Len()) {
		p.err = cmp.Or(p.err, errImage)
		return 0
	}
	return n
}

func (p *parser) bytes(b []byte) {
	if p.err == nil {
		_, p.err = io.ReadFull(p.r, b)
	}
}

func (p *parser) place(position int64) int64 {
	v := p.number()
	if v > 0 {
		return position + v
	}
	return v
}
