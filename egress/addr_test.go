package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/helve-ai/helve/egress"
)

func TestCheckAddr(t *testing.T) {
	for _, test := range []struct{ addr, want string }{ // want "": public
		{"8.8.8.8", ""}, {"93.184.216.34", ""}, {"11.0.0.1", ""}, {"1.0.0.0", ""}, {"9.255.255.255", ""},
		{"126.255.255.255", ""}, {"128.0.0.0", ""}, {"172.15.255.255", ""}, {"172.32.0.0", ""},
		{"192.167.255.255", ""}, {"192.169.0.0", ""}, {"100.63.255.255", ""}, {"100.128.0.0", ""},
		{"169.253.255.255", ""}, {"169.255.0.0", ""}, {"198.17.255.255", ""}, {"198.20.0.0", ""},
		{"223.255.255.255", ""}, {"168.63.129.15", ""},
		{"2606:2800:220:1::1", ""}, {"2001:4860:4860::8888", ""}, {"2001:200::1", ""}, {"2a00::1", ""}, {"3ffe:ffff::1", ""},
		{"::ffff:8.8.8.8", ""}, {"64:ff9b::8.8.8.8", ""},

		{"0.0.0.0", "unspecified"}, {"0.1.2.3", "unspecified"}, {"127.0.0.1", "loopback"}, {"127.255.255.254", "loopback"},
		{"10.0.0.0", "private"}, {"10.255.255.255", "private"}, {"172.16.0.0", "private"}, {"172.31.255.255", "private"},
		{"192.168.0.0", "private"}, {"192.168.255.255", "private"}, {"100.64.0.0", "shared"}, {"100.127.255.255", "shared"},
		{"169.254.0.1", "link-local"}, {"192.0.0.1", "protocols"}, {"192.0.2.1", "documentation"}, {"192.88.99.1", "6to4"},
		{"198.18.0.0", "benchmarking"}, {"198.19.255.255", "benchmarking"}, {"198.51.100.1", "documentation"},
		{"203.0.113.1", "documentation"}, {"224.0.0.1", "multicast"}, {"239.255.255.255", "multicast"},
		{"240.0.0.1", "reserved"}, {"255.255.255.255", "broadcast"},
		{"169.254.169.254", "metadata"}, {"169.254.170.2", "metadata"}, {"100.100.100.200", "metadata"},
		{"192.0.0.192", "metadata"}, {"168.63.129.16", "metadata"}, {"fd00:ec2::254", "metadata"}, {"fd20:ce::254", "metadata"},

		{"::", "unspecified"}, {"::1", "loopback"}, {"::127.0.0.1", "deprecated"}, {"::8.8.8.8", "deprecated"},
		{"::ffff:127.0.0.1", "loopback"}, {"::ffff:169.254.169.254", "metadata"}, {"::ffff:0:127.0.0.1", "outside"},
		{"64:ff9b::127.0.0.1", "loopback"}, {"64:ff9b::a9fe:a9fe", "metadata"}, {"64:ff9b:1::8.8.8.8", "local translation"},
		{"100::1", "discard"}, {"2001:0:7f00:1::", "Teredo"}, {"2001:2::1", "protocols"}, {"2001:10::1", "ORCHID"},
		{"2001:20::1", "ORCHID"}, {"2001:1ff::1", "protocols"}, {"2001:db8::1", "documentation"}, {"2002:808:808::", "6to4"},
		{"3fff::1", "documentation"}, {"fc00::1", "private"}, {"fdff::1", "private"}, {"fe80::1", "link-local"},
		{"fe80::1%eth0", "zone"}, {"2606::1%eth0", "zone"}, {"fec0::1", "site-local"}, {"ff02::1", "multicast"},
		{"5f00::1", "outside"}, {"4000::1", "outside"}, {"2606:2800::5efe:7f00:1", "ISATAP"}, {"2606:2800::200:5efe:7f00:1", "ISATAP"},
	} {
		err := egress.Policy{}.CheckAddr(netip.MustParseAddr(test.addr))
		var e *egress.Error
		switch {
		case test.want == "" && err != nil:
			t.Errorf("CheckAddr(%s): %v, want public", test.addr, err)
		case test.want != "" && (!errors.As(err, &e) || e.Code != egress.CodeRefused || !strings.Contains(e.Reason, test.want)):
			t.Errorf("CheckAddr(%s): %v, want a refusal with %q in it", test.addr, err, test.want)
		}
	}
	if (egress.Policy{}).CheckAddr(netip.Addr{}) == nil {
		t.Error("CheckAddr accepts no address")
	}
}
