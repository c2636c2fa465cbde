package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/internal/durable"
)

// AddressFile contains the URL of the process that uses a data directory, so that commands on this
// machine find it, and in a second line the certificate file of its listener, if that has TLS. It exists while that process serves. A crash leaves it behind: until the next
// start, which removes it first, nobody answers at the URL, or another process does.
func AddressFile(dir string) string { return filepath.Join(dir, "address") }

// Address is where a process serves HTTP.
type Address struct {
	URL  string // empty: nowhere
	Cert string // certificate file of the listener, which has this key whatever its name; empty: no TLS
}

// WriteAddress writes the address of a listener. Only the holder of the directory's lock may.
func WriteAddress(dir string, at net.Addr, cert string) error {
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return fmt.Errorf("address of the listener: %w", err)
	}
	text := "http://" + reachable(addr) + "\n"
	if cert != "" {
		if cert, err = filepath.Abs(cert); err != nil {
			return fmt.Errorf("address of the listener: %w", err)
		}
		text = "https://" + reachable(addr) + "\n" + cert + "\n"
	}
	return durable.Write(AddressFile(dir), []byte(text))
}

// reachable is the address of a listener for clients on this machine.
func reachable(addr netip.AddrPort) string {
	ip := addr.Addr().Unmap()
	switch {
	case ip.IsUnspecified() && ip.Is4():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip.IsUnspecified():
		ip = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(ip, addr.Port()).String()
}

// ReadAddress is the address that a data directory names; zero if it names none. It must be
// of this machine, since a directory can come from anywhere and API keys are sent there.
func ReadAddress(dir string) (Address, error) {
	raw, err := os.ReadFile(AddressFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Address{}, nil
	}
	if err != nil {
		return Address{}, unreadable(err)
	}
	text, cert, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && (u.Scheme != "https" || cert == "") || u.Path != "" || u.User != nil || u.RawQuery != "" || !Local(u.Hostname()) {
		return Address{}, fmt.Errorf("%s does not name an address of this machine: remove the file, or start writ there", AddressFile(dir))
	}
	return Address{text, cert}, nil
}

// Local reports whether a host is an address of this machine.
func Local(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == ip {
			return true
		}
	}
	return false
}
