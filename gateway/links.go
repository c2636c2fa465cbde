package gateway

import (
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

// linkInfo separates links from whatever else the key ever signs.
const linkInfo = "writ artifact link v1\nGET\n"

// Links makes and checks addresses that give one artifact of one tenant, by GET,
// before a whole second, to whoever has them:
//
//	/agent/artifacts/sha256:<hex>?before=<Unix seconds>&mac=<base64url>&tenant=<tenant>
//
// mac is HMAC-SHA-256 over linkInfo and the length-prefixed tenant, digest and
// second. Links of no key make and open nothing.
type Links struct{ Key []byte }

var errNoLink = errors.New("no link can be made")

// Link to a tenant's cas://sha256:<hex>. A part of a second is cut off.
func (l Links) Link(tenant, ref string, before time.Time) (string, error) {
	digest, ok := strings.CutPrefix(ref, "cas://")
	if !ok || !intents.IsDigest(digest) || tenant == "" || len(l.Key) == 0 {
		return "", errNoLink
	}
	second := strconv.FormatInt(before.Unix(), 10)
	q := url.Values{"tenant": {tenant}, "before": {second}, "mac": {base64.RawURLEncoding.EncodeToString(l.mac(tenant, digest, second))}}
	return "/agent/artifacts/" + digest + "?" + q.Encode(), nil
}

// open says whose artifact a link leads to. A link that was changed, or whose time
// is over, is refused.
func (l Links) open(digest string, q url.Values, now time.Time) (tenant string, ok bool) {
	tenant, second := q.Get("tenant"), q.Get("before")
	mac, err := base64.RawURLEncoding.Strict().DecodeString(q.Get("mac"))
	if err != nil || len(l.Key) == 0 || len(q) != 3 || !hmac.Equal(mac, l.mac(tenant, digest, second)) {
		return "", false
	}
	before, err := strconv.ParseInt(second, 10, 64)
	return tenant, err == nil && now.Unix() < before
}

func (l Links) mac(parts ...string) []byte {
	m := hmac.New(sha256.New, l.Key)
	m.Write([]byte(linkInfo)) // never fails
	for _, p := range parts {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		m.Write([]byte(p))
	}
	return m.Sum(nil)
}
