package quakes

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// feedGzip is the USGS feed "All Earthquakes, Past Week" of 7 February 2018
// (public domain), compressed; its metadata names its origin.
//
//go:embed feed.json.gz
var feedGzip []byte

// feedLimit bounds the decompressed feed in bytes.
const feedLimit = 8 << 20

// FeedSHA256 is the SHA-256 of the feed as the USGS served it, in hex.
const FeedSHA256 = "a42702a83ffbae679f95d1fa53e2cae0bae13b21e599a68cdd50a44fc52129f7"

// Feed is the feed byte for byte as received: one JSON document of 1,219,853
// bytes, one feature a line. It is decompressed once; callers must not change it.
func Feed() ([]byte, error) { return feed() }

var feed = sync.OnceValues(func() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(feedGzip))
	if err != nil {
		return nil, fmt.Errorf("demo feed: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(z, feedLimit+1))
	if err != nil {
		return nil, fmt.Errorf("demo feed: %w", err)
	}
	if len(b) > feedLimit {
		return nil, fmt.Errorf("demo feed: larger than %d bytes", feedLimit)
	}
	return b, z.Close()
})

func feedSkill(data []byte) skill {
	return skill{
		name: "earthquake_feed",
		description: "All earthquakes of one week, worldwide, as the USGS published them: " +
			"for each its magnitude (how strong it was), place, time, depth and more. Takes no input and returns the whole feed.",
		input:  schema("empty_input"),
		output: schema("feed_output"),
		handle: feedHandler(data),
	}
}

// feedHandler answers with the feed twice: as structured content, and as text
// with its lines as received (a sample of lines is then a sample of features).
func feedHandler(data []byte) server.ToolHandlerFunc {
	text := string(data)
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := decode(req, &struct{}{}); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return structured(data, text), nil
	}
}
