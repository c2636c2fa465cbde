package policies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// manifestFile is OPA's name of the file of a bundle that is no policy.
const manifestFile = ".manifest"

// manifest of our bundles; OPA's own members.
type manifest struct {
	Revision    string   `json:"revision"`
	Roots       []string `json:"roots"`
	RegoVersion int      `json:"rego_version"`
}

// BuildBundle packs the deciding part of a tree as an unsigned OPA bundle (gzipped tar). Equal
// trees give equal bytes. The revision is at least 1.
func BuildBundle(t Tree) ([]byte, error) {
	if t.Revision < 1 {
		return nil, errors.New("a bundle's revision is at least 1")
	}
	files := t.Source.Deciding()
	m, err := json.Marshal(manifest{Revision: strconv.FormatInt(t.Revision, 10), Roots: []string{""}, RegoVersion: 1})
	if err != nil {
		return nil, err
	}
	files[manifestFile] = m
	return pack(files)
}

// ReadBundle opens a bundle.
func ReadBundle(raw []byte) (Tree, error) {
	files, err := unpack(raw)
	if err != nil {
		return Tree{}, err
	}
	// OPA's own reader judges the manifest and the modules.
	b, err := bundle.NewReader(bytes.NewReader(raw)).WithSizeLimitBytes(maxSource).WithCapabilities(Capabilities()).WithSkipBundleVerification(true).Read()
	if err != nil {
		return Tree{}, fmt.Errorf("bundle: %w", err)
	}
	t := Tree{Source: Source{}}
	if t.Revision, err = strconv.ParseInt(b.Manifest.Revision, 10, 64); err != nil || t.Revision < 1 {
		return Tree{}, fmt.Errorf("bundle: revision %q is no number from 1: revisions are compared", b.Manifest.Revision)
	}
	modules := 0
	for name, content := range files {
		switch {
		case isModule(name):
			modules++
			t.Source[name] = content
		case isData(name):
			t.Source[name] = content
		}
	}
	if modules == 0 {
		return Tree{}, errors.New("bundle: no Rego module")
	}
	return t, nil
}

func pack(files Source) ([]byte, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, name := range files.names() {
		if err := w.WriteHeader(&tar.Header{Name: "/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// unpack reads the files of a bundle, each once, under clean relative names.
func unpack(raw []byte) (Source, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	bounded := &io.LimitedReader{R: z, N: 2 * maxSource}
	r, files := tar.NewReader(bounded), Source{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("bundle: %w", err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		name := path.Clean(strings.TrimLeft(h.Name, "/"))
		if h.Typeflag != tar.TypeReg || !fs.ValidPath(name) {
			return nil, fmt.Errorf("bundle: %q is no file of a bundle", h.Name)
		}
		if _, taken := files[name]; taken {
			return nil, fmt.Errorf("bundle: %s stands twice", name)
		}
		if files[name], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("bundle: %w", err)
		}
	}
}
