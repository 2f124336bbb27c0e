package egress

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dialer connects to what the policy allows.
type dialer struct {
	policy Policy
}

const (
	dialTimeout = 15 * time.Second       // to resolve and connect
	headStart   = 250 * time.Millisecond // before the next address is tried as well (RFC 8305, section 5)
	maxTried    = 8                      // addresses of one name
)

// dial connects to address, a host and a port as the transport gives them.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	at, err := parseHostPort(address)
	if err != nil {
		return nil, refused("", "%v", err)
	}
	if err := d.policy.checkPlace("", at); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addrs := []netip.Addr{at.addr}
	if !at.addr.IsValid() {
		if addrs, err = d.resolve(ctx, at); err != nil {
			return nil, err
		}
	}
	return d.connect(ctx, at, addrs)
}

// resolve returns the addresses of a name, none of which is refused: a name
// that points both outside and inside is not an honest one.
func (d *dialer) resolve(ctx context.Context, at place) ([]netip.Addr, error) {
	resolver, name := d.policy.Resolver, at.host
	if resolver == nil {
		resolver = net.DefaultResolver
		if !d.policy.declares(at) {
			name += "." // rooted: the machine's search domains would turn it into a name of the inside
		}
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: at.host, IsNotFound: true}
	}
	plain := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		plain[i] = a.Unmap() // resolvers write IPv4 addresses in either form
		if err := d.policy.checkDialled(at, plain[i]); err != nil {
			return nil, err
		}
	}
	return interleave(plain), nil
}

// interleave returns at most maxTried addresses, the families in turn,
// beginning with the resolver's favourite.
func interleave(addrs []netip.Addr) []netip.Addr {
	var first, second, out []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	for i := 0; len(out) < maxTried && (i < len(first) || i < len(second)); i++ {
		out = append(out, first[min(i, len(first)):min(i+1, len(first))]...)
		out = append(out, second[min(i, len(second)):min(i+1, len(second))]...)
	}
	return out
}

// connect tries the addresses in order, each with a head start over the next,
// and returns the first connection. The others are over when it returns.
func (d *dialer) connect(ctx context.Context, at place, addrs []netip.Addr) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, len(addrs))
	started, pending := 0, 0
	start := func() {
		if started == len(addrs) {
			return
		}
		to := netip.AddrPortFrom(addrs[started], at.port).String()
		started, pending = started+1, pending+1
		go func() {
			conn, err := d.socket(at).DialContext(ctx, "tcp", to)
			results <- result{conn, err}
		}()
	}
	defer func() {
		cancel()
		for ; pending > 0; pending-- {
			if r := <-results; r.err == nil {
				r.conn.Close()
			}
		}
	}()
	start()
	next := time.NewTicker(headStart)
	defer next.Stop()
	var firstErr error
	for pending > 0 {
		select {
		case <-next.C:
			start()
		case r := <-results:
			pending--
			if r.err == nil {
				return r.conn, nil
			}
			firstErr = or(firstErr, r.err)
			start()
			next.Reset(headStart)
		}
	}
	return nil, firstErr
}

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
