package egress

import "net/netip"

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
var blocks = []block{
	{netip.MustParsePrefix("169.254.169.254/32"), "a metadata service", false},
	{netip.MustParsePrefix("169.254.170.0/24"), "a metadata service", false},
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata service", false},
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata service", false},
	{netip.MustParsePrefix("fd00:ec2::/32"), "a metadata service", false},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a metadata service", false},

	{netip.MustParsePrefix("127.0.0.0/8"), "this machine", true},
	{netip.MustParsePrefix("::1/128"), "this machine", true},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network", true},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network", true},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network", true},
	{netip.MustParsePrefix("fc00::/7"), "a private network", true},
	{netip.MustParsePrefix("100.64.0.0/10"), "the network of a provider", true},
	{netip.MustParsePrefix("198.18.0.0/15"), "a network for benchmarks", true},

	{netip.MustParsePrefix("0.0.0.0/8"), "no address", false},
	{netip.MustParsePrefix("::/128"), "no address", false},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address", false},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address", false},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols", false},
	{netip.MustParsePrefix("2001::/23"), "reserved for protocols", false}, // Teredo, too
	{netip.MustParsePrefix("192.0.2.0/24"), "an example", false},
	{netip.MustParsePrefix("198.51.100.0/24"), "an example", false},
	{netip.MustParsePrefix("203.0.113.0/24"), "an example", false},
	{netip.MustParsePrefix("2001:db8::/32"), "an example", false},
	{netip.MustParsePrefix("3fff::/20"), "an example", false},
	{netip.MustParsePrefix("192.88.99.0/24"), "a translation of another address", false},
	{netip.MustParsePrefix("2002::/16"), "a translation of another address", false},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address", false},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address", false},
}

var (
	global = netip.MustParsePrefix("2000::/3")     // all that IPv6 has of global addresses
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // which ends with an IPv4 address
)

// plain is the address that packets for a reach in the end, as far as a says it.
func plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// judge says what is wrong with an address; empty: everybody may be led there. near is as
// in block.
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
