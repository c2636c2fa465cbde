// Serve runs the CRM of the evaluations as a skill server: over its standard streams, or
// with --listen over HTTP.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"aob.dev/writ/internal/e2e/testdata/crm"
)

func main() {
	listen := flag.String("listen", "", "address to serve on, such as 127.0.0.1:9100; none: standard input and output")
	flag.Parse()
	s := crm.New(time.Now().UTC())
	var err error
	switch *listen {
	case "":
		err = s.ServeStdio()
	default:
		srv := &http.Server{Addr: *listen, Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
		fmt.Fprintf(os.Stderr, "the CRM is at http://%s/mcp\n", *listen)
		err = srv.ListenAndServe()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crm:", err)
		os.Exit(1)
	}
}
