package policies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"

	"aob.dev/writ/intents"
)

// OPA's names of the files of a bundle that are no policy.
const (
	manifestFile   = ".manifest"
	signaturesFile = ".signatures.json"
)

// manifest of our bundles; OPA's own members.
type manifest struct {
	Revision    string   `json:"revision"`
	Roots       []string `json:"roots"`
	RegoVersion int      `json:"rego_version"`
}

// BuildBundle packs the deciding part of a tree as an OPA bundle (gzipped tar), unsigned if
// there is no key. Equal trees give equal bytes. The revision is at least 1.
func BuildBundle(t Tree, key *intents.Signer) ([]byte, error) {
	if t.Revision < 1 {
		return nil, errors.New("a bundle's revision is at least 1")
	}
	files := t.Source.Deciding()
	m, err := json.Marshal(manifest{Revision: strconv.FormatInt(t.Revision, 10), Roots: []string{""}, RegoVersion: 1})
	if err != nil {
		return nil, err
	}
	files[manifestFile] = m
	if key != nil {
		if files[signaturesFile], err = signatures(files, *key); err != nil {
			return nil, err
		}
	}
	return pack(files)
}

// ReadBundle opens a bundle. With a key, the whole bundle must be signed by it: OPA's own reader
// verifies that. Without a key, any signature is ignored.
func ReadBundle(raw []byte, key ed25519.PublicKey) (Tree, error) {
	files, err := unpack(raw)
	if err != nil {
		return Tree{}, err
	}
	r := bundle.NewReader(bytes.NewReader(raw)).WithSizeLimitBytes(maxSource).WithCapabilities(Capabilities())
	if key == nil {
		r = r.WithSkipBundleVerification(true)
	} else {
		config, err := verification(key)
		if err != nil {
			return Tree{}, err
		}
		r = r.WithBundleVerificationConfig(config)
	}
	b, err := r.Read()
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

// verification pins key and algorithm: the bundle chooses neither.
func verification(key ed25519.PublicKey) (*bundle.VerificationConfig, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	kid := intents.Thumbprint(key)
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	keys := map[string]*bundle.KeyConfig{kid: {Key: string(text), Algorithm: "EdDSA"}}
	return bundle.NewVerificationConfig(keys, kid, "", nil), nil
}

// signatures is .signatures.json: a JWT that lists every file with its hash.
func signatures(files Source, key intents.Signer) ([]byte, error) {
	hasher, err := bundle.NewSignatureHasher(bundle.SHA256)
	if err != nil {
		return nil, err
	}
	var claims struct {
		Files []bundle.FileInfo `json:"files"`
	}
	for _, name := range files.names() {
		var content any = files[name]
		if bundle.IsStructuredDoc(name) { // hashed by its value
			if err := util.Unmarshal(files[name], &content); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		sum, err := hasher.HashFile(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		claims.Files = append(claims.Files, bundle.NewFile(name, hex.EncodeToString(sum), string(bundle.SHA256)))
	}
	token, err := intents.SignCompact(key, "JWT", claims)
	if err != nil {
		return nil, err
	}
	return json.Marshal(bundle.SignaturesConfig{Signatures: []string{token}})
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
