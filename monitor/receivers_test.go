package monitor_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/monitor"
)

// TestReceiverFaults: the error of a receiver that fails has the setting that helps and the command
// that tries it, and not its URL, which may be a secret.
func TestReceiverFaults(t *testing.T) {
	now := func() time.Time { return noon }
	for name, b := range egresstest.Servers(t) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		for _, r := range []monitor.Receiver{monitor.Webhook{URL: b.URL + "/hidden", Secret: "s", Now: now}, monitor.Slack{URL: b.URL + "/hidden"}} {
			t.Run(name+"/"+r.Name(), func(t *testing.T) {
				err := r.Send(ctx, monitor.Incident{Rule: "DiskLow", Since: noon})
				b.Check(t, err, "alerts are kept for it")
				if err != nil && (strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "writ alerts test")) {
					t.Error(err)
				}
			})
		}
	}
}

// greets sends each connection its lines, one for each of the client's and the first before; after
// the last it is silent.
func greets(t *testing.T, ip string, lines ...string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewScanner(conn)
				for _, line := range lines {
					if line == "" || !wrote(conn, line) || !in.Scan() {
						return
					}
				}
				for in.Scan() { // until the client leaves
				}
			}()
		}
	}()
	return l.Addr().String()
}

func wrote(to io.Writer, line string) bool {
	_, err := fmt.Fprint(to, line+"\r\n")
	return err == nil
}

// handshake is a mail server that begins TLS with an untrusted certificate.
func handshake(t *testing.T) (addr string) {
	t.Helper()
	certificate := httptest.NewTLSServer(nil)
	t.Cleanup(certificate.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewScanner(conn)
		for _, line := range []string{"220 mail.example", "250-mail.example\r\n250 STARTTLS", "220 go on"} {
			if !wrote(conn, line) || line != "220 go on" && !in.Scan() {
				return
			}
		}
		_ = tls.Server(conn, certificate.TLS).HandshakeContext(t.Context()) // the client refuses
	}()
	return l.Addr().String()
}
