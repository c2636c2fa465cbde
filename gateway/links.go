package gateway

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

// linkInfo separates links from all other uses of the key.
const linkInfo = "writ artifact link v1\nGET\n"

// linkAge is how long a link is valid.
const linkAge = 15 * time.Minute

// Links creates and checks addresses that return one artifact to its reader, by GET, before a
// whole second, as long as the reader may read:
//
//	/agent/artifacts/sha256:<hex>?before=<Unix seconds>&client=…&mac=<base64url>&roles=<a,b>&tenant=…&user=…
//
// mac is HMAC-SHA-256 over linkInfo and the length-prefixed values of the others and the digest.
// Links without a key create and open nothing.
type Links struct{ Key []byte }

// linkKeyInfo separates the key of links from the tag keys of tenants. Both are derived from one
// secret.
const linkKeyInfo = "writ artifact link key v1\n"

// LinkKey derives the key of links from a secret.
func LinkKey(secret []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, linkKeyInfo, sha256.Size)
}

var errNoLink = errors.New("no link can be made")

// Link returns a link to a cas://sha256:<hex> for a reader with a client (act.client of the
// grant).
func (l Links) Link(reader intents.Principal, client, ref string, now time.Time) (link string, before time.Time, err error) {
	digest, ok := strings.CutPrefix(ref, "cas://")
	if !ok || !intents.IsDigest(digest) || reader.Tenant == "" || len(l.Key) == 0 {
		return "", before, errNoLink
	}
	before = now.Add(linkAge).UTC().Truncate(time.Second)
	q := url.Values{
		"tenant": {reader.Tenant}, "user": {reader.UserID}, "client": {client}, "roles": {strings.Join(reader.Roles, ",")},
		"before": {strconv.FormatInt(before.Unix(), 10)},
	}
	q.Set("mac", base64.RawURLEncoding.EncodeToString(l.mac(digest, q)))
	return "/agent/artifacts/" + digest + "?" + q.Encode(), before, nil
}

// open returns the reader for whom a link was made, and when. It refuses a changed or expired
// link.
func (l Links) open(digest string, q url.Values, now time.Time) (reader actor, since time.Time, ok bool) {
	mac, err := base64.RawURLEncoding.Strict().DecodeString(q.Get("mac"))
	if err != nil || len(l.Key) == 0 || len(q) != len(linkParts)+1 || !hmac.Equal(mac, l.mac(digest, q)) {
		return reader, since, false
	}
	second, err := strconv.ParseInt(q.Get("before"), 10, 64)
	before := time.Unix(second, 0)
	reader = actor{tenant: q.Get("tenant"), user: q.Get("user"), keyID: intents.CallerOf(q.Get("client")), roles: strings.Split(q.Get("roles"), ",")}
	return reader, before.Add(-linkAge), err == nil && now.Before(before)
}

// linkParts are the parameters of a link, except its mac.
var linkParts = []string{"tenant", "user", "client", "roles", "before"}

func (l Links) mac(digest string, q url.Values) []byte {
	parts := []string{digest}
	for _, name := range linkParts {
		parts = append(parts, q.Get(name))
	}
	m := hmac.New(sha256.New, l.Key)
	m.Write([]byte(linkInfo)) // never fails
	for _, p := range parts {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		m.Write([]byte(p))
	}
	return m.Sum(nil)
}
