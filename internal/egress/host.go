package egress

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// place is a host and a port as they are compared: the host in lower case, in ASCII and
// without a dot at its end.
type place struct{ host, port string }

func (p place) String() string { return net.JoinHostPort(p.host, p.port) }

// ports of the schemes of servers and proxies.
var ports = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

func placeOf(u *url.URL) (place, error) {
	return newPlace(u.Hostname(), cmp.Or(u.Port(), ports[u.Scheme]))
}

var errHost = errors.New("neither a name nor an address")

func newPlace(host, port string) (place, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return place{a.Unmap().String(), port}, nil
	}
	host, err := inASCII(strings.TrimSuffix(host, "."))
	if err != nil || host == "" {
		return place{}, errHost
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return place{a.String(), port}, nil
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		return place{}, errHost // an address in a form that only some programs read
	}
	return place{host, port}, nil
}

// inASCII is a name as net/http resolves it: an ASCII name need not be a domain name.
func inASCII(name string) (string, error) {
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(name), nil
	}
	return idna.Lookup.ToASCII(name)
}

// within are the domains of names that mean something in one network alone.
var within = []string{"localhost", "localdomain", "local", "internal", "lan", "home.arpa"}

// judge names the fault of the host itself; empty: that depends on its addresses.
func (p place) judge() string {
	if a, err := netip.ParseAddr(p.host); err == nil {
		is, _ := judge(a)
		return is
	}
	for _, domain := range within {
		if p.host == domain || strings.HasSuffix(p.host, "."+domain) {
			return "a name of a private network"
		}
	}
	if !strings.Contains(p.host, ".") {
		return "a name of a private network"
	}
	return ""
}
