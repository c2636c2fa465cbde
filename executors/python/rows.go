package python

// rows counts the rows of the data written to it, in constant memory. In JSON
// a row is an element of the longest array that is in no other array; without an
// array it is a document, of which several may follow each other. In any other text a
// row is a line. Malformed JSON is counted approximately.
type rows struct {
	begun, isJSON bool
	lines         int
	midLine       bool // bytes since the last line end

	text, escaped bool
	depth         int  // how many brackets are open
	arrays        int  // how many of them are [
	outer         int  // depth inside the array that stands in no other
	elements      int  // in that array
	pending       bool // something but white space since [ or ,
	found         bool // there was an array
	longest       int
	documents     int
}

// Write implements io.Writer; it never fails.
func (r *rows) Write(p []byte) (int, error) {
	for _, c := range p {
		r.byte(c)
	}
	return len(p), nil
}

func (r *rows) byte(c byte) {
	if c == '\n' {
		r.lines++
	}
	r.midLine = c != '\n'
	space := c == ' ' || c == '\t' || c == '\r' || c == '\n'
	if !r.begun && !space {
		r.begun, r.isJSON = true, c == '[' || c == '{'
	}
	switch {
	case !r.isJSON:
	case r.text:
		r.text, r.escaped = r.escaped || c != '"', !r.escaped && c == '\\'
	case !space:
		r.token(c)
	}
}

func (r *rows) token(c byte) {
	outermost := r.arrays == 1 && r.depth == r.outer
	switch c {
	case '[', '{':
		r.pending = r.pending || outermost
		r.open(c)
	case ']', '}':
		if outermost && c == ']' {
			r.endElement()
			r.longest, r.elements = max(r.longest, r.elements), 0
		}
		r.close(c)
	case ',':
		if outermost {
			r.endElement()
		}
	default:
		r.text = c == '"'
		if outermost {
			r.pending = true
		}
	}
}

func (r *rows) endElement() {
	if r.pending {
		r.elements++
	}
	r.pending = false
}

func (r *rows) open(c byte) {
	r.depth++
	if c == '[' {
		r.found = true
		if r.arrays++; r.arrays == 1 {
			r.outer, r.pending = r.depth, false // nothing in it yet
		}
	}
}

func (r *rows) close(c byte) {
	if r.depth == 0 {
		return // it closes nothing
	}
	if c == ']' {
		r.arrays = max(r.arrays-1, 0)
	}
	if r.depth--; r.depth == 0 {
		r.arrays = 0
		r.documents++
	}
}

// count is the number of rows written so far.
func (r *rows) count() int {
	switch {
	case !r.begun:
		return 0
	case !r.isJSON && r.midLine:
		return r.lines + 1
	case !r.isJSON:
		return r.lines
	case r.documents > 1 || !r.found:
		return r.documents
	}
	return max(r.longest, r.elements)
}
