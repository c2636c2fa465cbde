package blobs3_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/storage/blobs3"
)

// TestFaults: a failing server is reported in words, with the setting that helps.
func TestFaults(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "writ")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "confidential")
	servers := egresstest.Servers(t)
	notFound := servers["Not Found"]
	notFound.Says = "there is no such bucket"
	servers["Not Found"] = notFound
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer) // each takes seconds: the client tries again
	for name, b := range servers {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			_, err := blobs3.Open(ctx, blobs3.Config{URL: "s3://acme/writ?endpoint=" + b.URL})
			answers <- answer{name, err}
		}()
	}
	for range servers {
		a := <-answers
		t.Run(a.name, func(t *testing.T) {
			servers[a.name].Check(t, a.err, "blobs that are kept there stay")
			if a.err != nil && (!strings.HasPrefix(a.err.Error(), "S3 bucket acme at 127.0.0.1") || strings.Contains(a.err.Error(), "confidential")) {
				t.Error(a.err)
			}
		})
	}
}
