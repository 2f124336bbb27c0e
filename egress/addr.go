package egress

import (
	"net/netip"
)

// A block is a range of addresses that are not the public network's.
type block struct {
	prefix   netip.Prefix
	what     string // completes "ADDRESS is …"
	nearby   bool   // a host the operator declares by name may be there
	metadata bool   // opened only by an exception of its own
}

// The special blocks of IPv4 and IPv6. The first that contains an address
// names it. Sources: the IANA special-purpose address registries (RFC 6890),
// and the cloud providers' documentation for the metadata services. IPv6 is
// public only within 2000::/3 (see checkIPv6), so that ranges without a row
// here are refused as well.
var blocks = []block{
	meta("169.254.169.254/32"), // most clouds
	meta("169.254.170.2/32"),   // AWS ECS
	meta("169.254.170.23/32"),  // AWS EKS
	meta("169.254.0.23/32"),    // Tencent
	meta("100.100.100.200/32"), // Alibaba
	meta("192.0.0.192/32"),     // Oracle
	meta("168.63.129.16/32"),   // Azure
	meta("fd00:ec2::254/128"),  // AWS
	meta("fd00:ec2::23/128"),   // AWS EKS
	meta("fd20:ce::254/128"),   // Google

	near("127.0.0.0/8", "a loopback address"),
	near("10.0.0.0/8", "a private address"),
	near("172.16.0.0/12", "a private address"),
	near("192.168.0.0/16", "a private address"),
	near("100.64.0.0/10", "a carrier's shared address"),
	far("0.0.0.0/8", "an unspecified address"),
	far("169.254.0.0/16", "a link-local address"),
	far("192.0.0.0/24", "an address reserved for protocols"),
	far("192.0.2.0/24", "a documentation address"),
	far("192.88.99.0/24", "a 6to4 relay's address"),
	far("198.18.0.0/15", "a benchmarking address"),
	far("198.51.100.0/24", "a documentation address"),
	far("203.0.113.0/24", "a documentation address"),
	far("224.0.0.0/4", "a multicast address"),
	far("255.255.255.255/32", "the broadcast address"),
	far("240.0.0.0/4", "a reserved address"),

	near("::1/128", "a loopback address"),
	near("fc00::/7", "a private (unique local) address"),
	far("::/128", "the unspecified address"),
	far("::/96", "an IPv4 address in a deprecated IPv6 form"),
	far("64:ff9b:1::/48", "an address for local translation to IPv4"),
	far("100::/64", "a discard-only address"),
	far("2001::/32", "a Teredo tunnel's address"),
	far("2001:10::/28", "an ORCHID, not an address of a host"),
	far("2001:20::/28", "an ORCHID, not an address of a host"),
	far("2001::/23", "an address reserved for protocols"),
	far("2001:db8::/32", "a documentation address"),
	far("2002::/16", "a 6to4 tunnel's address"),
	far("3fff::/20", "a documentation address"),
	far("fe80::/10", "a link-local address"),
	far("fec0::/10", "a site-local address"),
	far("ff00::/8", "a multicast address"),
}

func meta(prefix string) block {
	return block{prefix: netip.MustParsePrefix(prefix), what: "a cloud's metadata address", metadata: true}
}

func near(prefix, what string) block {
	return block{prefix: netip.MustParsePrefix(prefix), what: what, nearby: true}
}

func far(prefix, what string) block {
	return block{prefix: netip.MustParsePrefix(prefix), what: what}
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// CheckAddr returns an [*Error] unless ip is a public address or one of the
// policy's exceptions. An IPv4 address in an IPv6 form that hosts do use
// (mapped, or NAT64 by its well-known prefix) is judged as what it stands for;
// every other form (compatible, 6to4, Teredo, ISATAP) is refused.
func (p Policy) CheckAddr(ip netip.Addr) error {
	return p.checkAddr(ip, false)
}

// checkAddr is CheckAddr, which lets nearby addresses pass if the operator
// declared the host that has them.
func (p Policy) checkAddr(ip netip.Addr, declared bool) error {
	if !ip.IsValid() {
		return refused("", "there is no address to judge")
	}
	if ip.Zone() != "" {
		return refused("", "%s has a zone, so it is an address of this link: only public addresses may be reached", ip)
	}
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		ip = embedded(ip)
	}
	b, special := special(ip)
	if !special || declared && b.nearby || p.excepts(ip, b.metadata) {
		return nil
	}
	return refused("", "%s is %s: only public addresses may be reached", ip, b.what)
}

// excepts reports whether an exception covers ip.
func (p Policy) excepts(ip netip.Addr, metadata bool) bool {
	for _, prefix := range p.AllowPrivate {
		if prefix.Contains(ip) && (!metadata || prefix.IsSingleIP()) {
			return true
		}
	}
	return false
}

// special returns the block that keeps ip, which is not a mapped address,
// from being public.
func special(ip netip.Addr) (block, bool) {
	for _, b := range blocks {
		if b.prefix.Contains(ip) {
			return b, true
		}
	}
	switch {
	case ip.Is4():
		return block{}, false
	case !global6.Contains(ip):
		return block{what: "outside of the public range 2000::/3"}, true
	case isISATAP(ip):
		return block{what: "an ISATAP tunnel's address"}, true
	}
	return block{}, false
}

// embedded returns the IPv4 address in the last four bytes of ip.
func embedded(ip netip.Addr) netip.Addr {
	b := ip.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// isISATAP reports whether ip's interface identifier is an IPv4 address'
// (RFC 5214, section 6.1).
func isISATAP(ip netip.Addr) bool {
	b := ip.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
