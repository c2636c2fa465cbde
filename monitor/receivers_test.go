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

// TestMailFaults: likewise, a mail server.
func TestMailFaults(t *testing.T) {
	t.Parallel()
	servers := egresstest.Servers(t)
	at := func(name string) string { return strings.TrimPrefix(servers[name].URL, "http://") }
	const hello = "250-mail.example\r\n250 AUTH PLAIN"
	for name, c := range map[string]struct{ at, says, do string }{
		"refuses":              {at("refuses"), "nothing listens there (connection refused)", "start it, or correct alert_email (--alert-email)"},
		"is silent":            {at("is silent"), "no answer in time", "start it, or correct alert_email (--alert-email)"},
		"hangs up":             {at("hangs up"), "it closed the connection without an answer", "start it, or correct alert_email (--alert-email)"},
		"hangs up after hello": {greets(t, "127.0.0.1", "220 mail.example", ""), "it closed the connection without an answer", "start it, or correct alert_email (--alert-email)"},
		"silent after hello":   {greets(t, "127.0.0.1", "220 mail.example"), "no answer in time", "start it, or correct alert_email (--alert-email)"},
		"something else":       {greets(t, "127.0.0.1", "+OK POP3 ready"), "it is no mail server", "correct alert_email (--alert-email)"},
		"a wrong password":     {greets(t, "127.0.0.1", "220 mail.example", hello, "535 5.7.8 bad"), "it does not take the credentials", "correct alert_email_password, and the user in alert_email"},
		"no TLS":               {greets(t, "127.0.0.2", "220 mail.example", hello), "it has no TLS, without which no password is sent", "correct alert_email (--alert-email)"},
		"an unknown authority": {handshake(t), "its certificate is of an authority that is not known here", "correct alert_email (--alert-email)"},
		"no such recipient":    {greets(t, "127.0.0.1", "220 mail.example", hello, "235 ok", "250 ok", "550 who?"), "it refuses the message", "see its log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			b := egresstest.Broken{Says: c.says, Do: c.do}
			e := monitor.Email{Server: c.at, From: "a@b", To: []string{"c@d"}, User: "ana", Password: "confidential", Now: func() time.Time { return noon }}
			err := e.Send(ctx, monitor.Incident{Rule: "DiskLow", Since: noon})
			b.Check(t, err, "alerts are kept for it")
			if err != nil && (strings.Contains(err.Error(), "confidential") || !strings.Contains(err.Error(), "writ alerts test")) {
				t.Error(err)
			}
		})
	}
}
