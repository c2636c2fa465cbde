package mcp

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
)

// notNumbers are words that encoders write for numbers which JSON lacks, in lower case and without sign.
var notNumbers = []string{"nan", "inf", "infinity"}

// jsonReader reads messages of a server, whose numbers that JSON lacks, such as NaN, become texts.
// Valid JSON stays as it is. A line break ends a string, because none can have one.
type jsonReader struct {
	in      io.Reader
	buf     [32 << 10]byte
	out     bytes.Buffer
	err     error // of in, after out
	word    []byte
	text    bool // within a string
	escaped bool
}

func (r *jsonReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 && r.err == nil {
		var n int
		n, r.err = r.in.Read(r.buf[:])
		for _, b := range r.buf[:n] {
			r.take(b)
		}
		if r.err != nil {
			r.endWord()
		}
	}
	if r.out.Len() == 0 {
		return 0, r.err
	}
	return r.out.Read(p)
}

func (r *jsonReader) take(b byte) {
	switch {
	case r.text:
		r.text = b != '\n' && (b != '"' || r.escaped)
		r.escaped = b == '\\' && !r.escaped
	case strings.IndexByte(alphanumeric+"+-.", b) >= 0:
		r.word = append(r.word, b)
		return
	default:
		r.endWord()
		r.text, r.escaped = b == '"', false
	}
	r.out.WriteByte(b)
}

// endWord passes on what stood outside of a string up to here.
func (r *jsonReader) endWord() {
	if slices.Contains(notNumbers, strings.ToLower(strings.TrimLeft(string(r.word), "+-"))) {
		r.word = slices.Concat([]byte{'"'}, r.word, []byte{'"'})
	}
	r.out.Write(r.word)
	r.word = r.word[:0]
}

// jsonTransport passes the bodies of responses through a jsonReader.
type jsonTransport struct{ next http.RoundTripper }

func (t jsonTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&jsonReader{in: resp.Body}, resp.Body}
	return resp, nil
}
