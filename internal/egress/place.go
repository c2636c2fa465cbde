package egress

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
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

// block is a range of addresses that no name of a stranger may lead to.
type block struct {
	netip.Prefix
	is string
	// near: machines of an operator are there, and a name that the operator wrote may lead
	// to them. To the others leads only the address itself, written by the operator.
	near bool
}

// blocks are the ranges of IANA's special-purpose registries that are not globally
// reachable, or translate to others, and the metadata services of clouds. The first that
// fits counts.
var blocks = slices.Concat(
	far("a metadata service", "169.254.169.254/32", "169.254.170.0/24", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128"),

	near("this machine", "127.0.0.0/8", "::1/128"),
	near("a private network", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
	near("the network of a provider", "100.64.0.0/10"),
	near("a network for benchmarks", "198.18.0.0/15"),

	far("no address", "0.0.0.0/8", "::/128"),
	far("a link-local address", "169.254.0.0/16", "fe80::/10"),
	far("reserved for protocols", "192.0.0.0/24", "2001::/23"), // Teredo, too
	far("an example", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
	far("a translation of another address", "192.88.99.0/24", "2002::/16"),
	far("a multicast address", "224.0.0.0/4", "ff00::/8"),
	far("a reserved address", "240.0.0.0/4"),
)

func far(is string, prefixes ...string) (list []block) {
	for _, p := range prefixes {
		list = append(list, block{netip.MustParsePrefix(p), is, false})
	}
	return list
}

func near(is string, prefixes ...string) []block {
	list := far(is, prefixes...)
	for i := range list {
		list[i].near = true
	}
	return list
}

var (
	global = netip.MustParsePrefix("2000::/3")     // all that IPv6 has of global addresses
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // which ends with an IPv4 address
)

// plain is the address that packets for a finally reach, as far as a encodes it.
func plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// judge names the fault of an address; empty: anybody may connect to it. near is as in block.
func judge(a netip.Addr) (is string, near bool) {
	a = plain(a)
	for _, b := range blocks {
		if b.Contains(a) {
			return b.is, b.near
		}
	}
	if !a.Is4() && !global.Contains(a) {
		return "a reserved address", false
	}
	return "", false
}
