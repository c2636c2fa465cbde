package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"net/url"
	"strings"
	"time"

	"aob.dev/writ/internal/egress"
)

// sendMail hands a mail to the SMTP server of an operator: smtps:// with TLS from the beginning,
// smtp:// with STARTTLS, which only a server on this machine may lack.
func sendMail(ctx context.Context, o Options, m Message) error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return &egress.ReasonError{Message: "its URL cannot be used", Mend: egress.Name}
	}
	conn, err := egress.Dial(ctx, u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(at); err != nil {
			return err
		}
	}
	if u.Scheme == "smtps" {
		conn = tls.Client(conn, egress.TLS(u.Hostname()))
	}
	c, err := smtp.NewClient(conn, u.Hostname())
	if err != nil {
		return err
	}
	if err := secure(c, u); err != nil {
		return err
	}
	if user, password, ok := strings.Cut(o.Secret, ":"); ok {
		if err := c.Auth(smtp.PlainAuth("", user, password, u.Hostname())); err != nil {
			return &egress.ReasonError{Message: "it does not take the credentials", Mend: egress.Secret, Err: err}
		}
	}
	if err := c.Mail(o.From); err != nil {
		return err
	}
	if err := c.Rcpt(o.To); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	text, err := mail(o, m)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil { // it has been taken
		return err
	}
	_ = c.Quit()
	return nil
}

func secure(c *smtp.Client, u *url.URL) error {
	if u.Scheme == "smtps" {
		return nil
	}
	if there, _ := c.Extension("STARTTLS"); there {
		return c.StartTLS(egress.TLS(u.Hostname()))
	}
	if u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() {
		return nil
	}
	return &egress.ReasonError{Message: "it offers no STARTTLS", Mend: egress.Trust}
}

// header is a text as the value of a header (RFC 2047). What looks like an encoded word stays text.
func header(text string) string {
	return mime.BEncoding.Encode("utf-8", strings.ReplaceAll(text, "=?", "= ?"))
}

// mail is a message as RFC 5322 has it. Nothing foreign is in a header but the encoded title.
func mail(o Options, m Message) ([]byte, error) {
	var b bytes.Buffer
	host := o.From[strings.LastIndexByte(o.From, '@')+1:]
	for _, h := range [][2]string{
		{"From", "<" + o.From + ">"},
		{"To", "<" + o.To + ">"},
		{"Subject", header(m.Title)},
		{"Date", o.Now().Format(time.RFC1123Z)},
		{"Message-ID", "<" + strings.ReplaceAll(m.ID, ":", ".") + "@" + host + ">"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
		{"Auto-Submitted", "auto-generated"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	text := m.Text
	if m.Link != "" {
		text += "\n\n" + m.Link
	}
	if _, err := w.Write([]byte(text + "\n")); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}
