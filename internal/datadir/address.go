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
// machine find it. It exists while that process serves. A crash leaves it behind: until the next
// start, which removes it first, nobody answers at the URL, or another process does.
func AddressFile(dir string) string { return filepath.Join(dir, "address") }

// WriteAddress writes the URL of a listener. Only the holder of the directory's lock may.
func WriteAddress(dir string, at net.Addr) error {
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return fmt.Errorf("address of the listener: %w", err)
	}
	return durable.Write(AddressFile(dir), []byte(reachable(addr)+"\n"))
}

// reachable is the URL of a listener for clients on this machine.
func reachable(addr netip.AddrPort) string {
	ip := addr.Addr().Unmap()
	switch {
	case ip.IsUnspecified() && ip.Is4():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip.IsUnspecified():
		ip = netip.IPv6Loopback()
	}
	return "http://" + netip.AddrPortFrom(ip, addr.Port()).String()
}

// ReadAddress is the URL that a data directory names; empty if it names none. It must be an
// address of this machine, since a directory can come from anywhere and API keys are sent
// to that URL.
func ReadAddress(dir string) (string, error) {
	raw, err := os.ReadFile(AddressFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", unreadable(err)
	}
	text := strings.TrimSpace(string(raw))
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Path != "" || u.User != nil || u.RawQuery != "" || !Local(u.Hostname()) {
		return "", fmt.Errorf("%s does not name an address of this machine: remove the file, or start writ there", AddressFile(dir))
	}
	return text, nil
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
