// Package pdf reads the text of PDF documents. Documents are untrusted and PDF parsers are prone to
// faults, so PDFium runs as WebAssembly, without files, network or memory other than its own. It is
// compiled for the first document, which takes some seconds, and then cached.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"aob.dev/writ/internal/ratelimit"
)

// Why a document is not read.
var (
	ErrBroken = errors.New("the PDF is broken, or needs a password")
	ErrLarge  = errors.New("the text of the PDF is too large: split it")
	ErrPages  = fmt.Errorf("the PDF has more than %d pages: split it", maxPages)
	errEngine = errors.New("the reader of PDF does not start")
)

const (
	memoryPages = 4096 // of 64 KiB, for one document
	atOnce      = 2    // documents
	maxPages    = 5000 // of one, whatever is on them: each costs time
)

var engine = sync.OnceValues(func() (pdfium.Pool, error) {
	return webassembly.Init(webassembly.Config{
		MaxIdle: 1, MaxTotal: atOnce, Stdout: io.Discard, Stderr: io.Discard, FSConfig: wazero.NewFSConfig(),
		RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(memoryPages).
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling),
	})
})

// turns limits each tenant to one document at a time.
var turns = ratelimit.PlacesOf(ratelimit.Shares{All: atOnce, Tenant: 1, Key: 1})

// Text is the text of all pages, of at most so many bytes. It stops when ctx ends. A tenant's
// documents are read one after another, so that they occupy one reader.
func Text(ctx context.Context, tenant string, raw []byte, limit int) (string, error) {
	leave, err := turns.Wait(ctx, tenant, "", 0)
	if err != nil {
		return "", err
	}
	defer leave()
	pool, err := engine()
	if err != nil {
		return "", errEngine
	}
	reader, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return "", errors.Join(errEngine, ctx.Err())
	}
	stay := context.AfterFunc(ctx, func() { _ = reader.Kill() })
	defer stay()
	text, err := read(reader, raw, limit)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	_ = reader.Close() // its state of the document is freed with it
	return text, err
}

// read never panics: any failure of the reader on a broken document is an error.
func read(reader pdfium.Pdfium, raw []byte, limit int) (text string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			text, err = "", ErrBroken
		}
	}()
	doc, err := reader.OpenDocument(&requests.OpenDocument{File: &raw})
	if err != nil {
		return "", ErrBroken
	}
	pages, err := reader.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return "", ErrBroken
	}
	if pages.PageCount > maxPages {
		return "", ErrPages
	}
	var out strings.Builder
	for i := range pages.PageCount {
		page, err := reader.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc.Document, Index: i}}})
		if err != nil {
			return "", fmt.Errorf("%w: page %d cannot be read", ErrBroken, i+1)
		}
		if out.Len()+len(page.Text) > limit {
			return "", ErrLarge
		}
		out.WriteString(strings.ReplaceAll(strings.ToValidUTF8(page.Text, " "), "\x00", " "))
		out.WriteString("\n\n")
	}
	return out.String(), nil
}
