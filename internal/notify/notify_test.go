package notify_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/internal/testing/egresstest"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func receiver(kind, url, secret string) notify.Receiver {
	return notify.New(notify.Options{
		Name: "ops", Kind: kind, URL: url, Secret: secret, From: "writ@example.org", To: "ben@example.org", Now: func() time.Time { return noon },
		Server: egress.Server{Name: "notices.ops", Unaffected: "approvals wait", Address: "notices.ops.url", Secret: "notices.ops.secret", Try: "writ notify test ops", Quiet: true},
	})
}

var message = notify.Message{ID: "m.1", Title: "Waits: pay <!channel> [x](http://evil)", Text: "Asked by zoë.\n.\nEnd", Link: "https://writ.example/console/approvals/1", Data: map[string]int{"n": 1}}

// TestKinds: each chat gets the text as text: none of its own markup comes from a message.
func TestKinds(t *testing.T) {
	var body []byte
	var header http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(srv.Close)
	for kind, want := range map[string]string{
		"slack":   `{"text":"Waits: pay &lt;!channel&gt; [x](http://evil)\nAsked by zoë.\n.\nEnd\n<https://writ.example/console/approvals/1>","unfurl_links":false,"unfurl_media":false}`,
		"webhook": `{"n":1}`,
		"teams": `{"attachments":[{"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","actions":[{"title":"Open","type":"Action.OpenUrl","url":"https://writ.example/console/approvals/1"}],
			"body":[{"inlines":[{"text":"Waits: pay <!channel> [x](http://evil)","type":"TextRun","weight":"Bolder"}],"type":"RichTextBlock"},
			{"inlines":[{"text":"Asked by zoë.\n.\nEnd","type":"TextRun","weight":"Default"}],"type":"RichTextBlock"}],"type":"AdaptiveCard","version":"1.4"},
			"contentType":"application/vnd.microsoft.card.adaptive"}],"type":"message"}`,
	} {
		if err := receiver(kind, srv.URL, "s").Send(t.Context(), message); err != nil {
			t.Error(err)
		}
		var got, expected any
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if d := cmp.Diff(expected, got); d != "" {
			t.Errorf("%s: %s", kind, d)
		}
	}
	if err := receiver("ntfy", srv.URL, "tk_1").Send(t.Context(), message); err != nil {
		t.Error(err)
	}
	if string(body) != message.Text || header.Get("Click") != message.Link || header.Get("Authorization") != "Bearer tk_1" || header.Get("Title") != message.Title {
		t.Errorf("ntfy: %s %v", body, header)
	}
}

// TestMail: a mail arrives as it is, and a line of one dot does not end it.
func TestMail(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	mails := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, data, text := bufio.NewScanner(c), false, ""
		fmt.Fprint(c, "220 test\r\n")
		for in.Scan() {
			line := in.Text()
			switch {
			case data && line == ".":
				data = false
				mails <- text
				fmt.Fprint(c, "250 taken\r\n")
			case data:
				text += strings.TrimPrefix(line, ".") + "\n"
			case line == "DATA":
				data = true
				fmt.Fprint(c, "354 go on\r\n")
			case strings.HasPrefix(line, "EHLO"):
				fmt.Fprint(c, "250-test\r\n250 AUTH PLAIN\r\n")
			case strings.HasPrefix(line, "AUTH PLAIN"):
				fmt.Fprint(c, "235 yes\r\n")
			default:
				text += line + "\n"
				fmt.Fprint(c, "250 yes\r\n")
			}
		}
	}()
	if err := receiver("mail", "smtp://"+l.Addr().String(), "me:secret").Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	want := "MAIL FROM:<writ@example.org>\nRCPT TO:<ben@example.org>\nFrom: <writ@example.org>\nTo: <ben@example.org>\nSubject: Waits: pay <!channel> [x](http://evil)\n" +
		"Date: Tue, 24 Nov 2026 12:00:00 +0000\nMessage-ID: <m.1@example.org>\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n" +
		"Content-Transfer-Encoding: quoted-printable\nAuto-Submitted: auto-generated\n\nAsked by zo=C3=AB.\n.\nEnd\n\nhttps://writ.example/console/approvals/1\n"
	if d := cmp.Diff(want, <-mails); d != "" {
		t.Error(d)
	}
}

// TestFaults: the error of a receiver that fails has the setting that helps and the command that
// tries it, and not its URL, which may be a secret.
func TestFaults(t *testing.T) {
	for name, b := range egresstest.Servers(t) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		for _, kind := range []string{"slack", "teams", "ntfy", "webhook"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				err := receiver(kind, b.URL+"/hidden", "s").Send(ctx, message)
				b.Check(t, err, "approvals wait")
				if err != nil && (strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "writ notify test ops")) {
					t.Error(err)
				}
			})
		}
	}
	err := receiver("mail", "smtp://"+strings.TrimPrefix(egresstest.Servers(t)["refuses"].URL, "http://"), "").Send(t.Context(), message)
	if err == nil || !strings.Contains(err.Error(), "nothing listens there") {
		t.Error(err)
	}
}
