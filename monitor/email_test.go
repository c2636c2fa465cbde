package monitor_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/monitor"
)

// mailbox is an SMTP server that takes one message. It has no TLS.
func mailbox(t *testing.T) (addr string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	out := make(chan string, 4)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			out <- converse(conn)
		}
	}()
	return l.Addr().String(), out
}

// converse is one conversation; it returns what the client sent.
func converse(conn net.Conn) string {
	defer conn.Close()
	var said strings.Builder
	in := bufio.NewScanner(conn)
	fmt.Fprint(conn, "220 mail.example\r\n")
	for data := false; in.Scan(); {
		line := in.Text()
		said.WriteString(line + "\n")
		switch {
		case data && line == ".":
			data = false
			fmt.Fprint(conn, "250 taken\r\n")
		case data:
		case strings.HasPrefix(line, "EHLO"):
			fmt.Fprint(conn, "250-mail.example\r\n250 AUTH PLAIN\r\n")
		case line == "DATA":
			data = true
			fmt.Fprint(conn, "354 go on\r\n")
		case line == "QUIT":
			return said.String() // no reply: the message is taken
		default:
			fmt.Fprint(conn, "250 well\r\n")
		}
	}
	return said.String()
}

// TestEmail: a conversation with a real server. Without TLS the password is not sent.
func TestEmail(t *testing.T) {
	addr, got := mailbox(t)
	now := func() time.Time { return noon }
	e, err := monitor.ParseEmail("smtp://"+addr+"?from=writ@a.example&to=ana@b.example,ben@b.example", "", now)
	if err != nil {
		t.Fatal(err)
	}
	e.Server = strings.Replace(e.Server, "localhost", "127.0.0.1", 1)
	over := noon.Add(time.Hour)
	if err := e.Send(t.Context(), monitor.Incident{Rule: "DiskLow", Since: noon, Until: &over}); err != nil {
		t.Fatal(err)
	}
	said := <-got
	for _, line := range []string{
		"MAIL FROM:<writ@a.example>", "RCPT TO:<ana@b.example>", "RCPT TO:<ben@b.example>", "From: writ@a.example", "To: ana@b.example, ben@b.example",
		"Subject: writ: over: DiskLow", "DiskLow is over: it lasted from 2026-11-24T12:00:00Z to 2026-11-24T13:00:00Z.",
	} {
		if !strings.Contains(said, line) {
			t.Errorf("no %q in\n%s", line, said)
		}
	}
	e.Server, e.User, e.Password = strings.Replace(addr, "127.0.0.1", "mail.test", 1), "ana", "hidden"
	if err := e.Send(t.Context(), monitor.Incident{Rule: "DiskLow", Since: noon}); err == nil {
		t.Error("sent to a name that is not there")
	}
	for _, bad := range []string{"mail.example", "smtp://mail.example", "smtp://m?from=a@b", "smtp://m?from=a@b&to=c", "smtp://m?from=a@b&to=c@d%0d%0aBcc:x@y", "http://m?from=a@b&to=c@d"} {
		if _, err := monitor.ParseEmail(bad, "", now); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
