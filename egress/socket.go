package egress

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// socket returns a dialer whose every connection is judged with the address
// that the kernel is about to be given, whoever chose it.
func (d *dialer) socket(at place) *net.Dialer {
	return &net.Dialer{
		Timeout: dialTimeout,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			if network != "tcp4" && network != "tcp6" {
				return refused("", "%s is not a TCP network", network)
			}
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return refused("", "the address %q cannot be judged", address)
			}
			if to.Port() != at.port {
				return refused("", "port %d is not the port %d that was asked for", to.Port(), at.port)
			}
			return d.policy.checkDialled(at, to.Addr())
		},
	}
}
