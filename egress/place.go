package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// localSuffixes end names that are answered inside a network (RFC 6761,
// RFC 6762, RFC 8375, and what routers, companies and clusters use).
var localSuffixes = []string{
	".localhost", ".local", ".internal", ".localdomain", ".home.arpa", ".in-addr.arpa", ".ip6.arpa",
	".lan", ".home", ".corp", ".intranet", ".private", ".svc", ".consul",
}

// otherPorts are those of protocols into whose streams a request could be
// smuggled: what browsers refuse (WHATWG Fetch, "bad port").
var otherPorts = []uint16{
	1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95,
	101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179,
	389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601,
	636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566,
	6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}

// checkPlace refuses what can be refused without resolving. What the operator
// declared passes, whatever its port.
func (p Policy) checkPlace(raw string, at place) error {
	if p.declares(at) {
		return nil
	}
	if at.addr.IsValid() {
		if err := p.CheckAddr(at.addr); err != nil {
			e := *AsError(err)
			e.URL = raw
			return &e
		}
	} else if isLocal(at.host) {
		return refused(raw, "%s is a local name: only hosts of the public network may be reached", at.host)
	}
	if _, found := slices.BinarySearch(otherPorts, at.port); found {
		return refused(raw, "port %d belongs to another protocol than HTTP", at.port)
	}
	return nil
}

// isLocal reports whether a name means something on this machine or network
// only.
func isLocal(name string) bool {
	if !strings.Contains(name, ".") {
		return true
	}
	return slices.ContainsFunc(localSuffixes, func(suffix string) bool {
		return strings.HasSuffix(name, suffix) || name == suffix[1:]
	})
}

// checkDialled judges an address that is about to be dialled for a place.
func (p Policy) checkDialled(at place, ip netip.Addr) error {
	declared := p.declares(at)
	if declared && at.addr.IsValid() {
		if ip.Unmap() == at.addr {
			return nil
		}
		declared = false
	}
	err := p.checkAddr(ip, declared)
	if err == nil || at.addr.IsValid() {
		return err
	}
	e := *AsError(err)
	e.Reason = at.host + " leads to a refused address: " + e.Reason
	return &e
}

// declares reports whether the operator allowed exactly this place.
func (p Policy) declares(at place) bool {
	return slices.ContainsFunc(p.AllowHosts, func(entry string) bool {
		allowed, err := parseHostPort(entry)
		return err == nil && allowed == at
	})
}
