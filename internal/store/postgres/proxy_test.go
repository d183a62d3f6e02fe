package postgres

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a store and its server. It can cut a connection at a commit:
// before the server has seen it, or after it has answered.
type proxy struct {
	l      net.Listener
	server string
	before atomic.Int32 // commits to cut off before the server sees them
	after  atomic.Int32 // commits to cut off when the server has answered
	cuts   atomic.Int32
	hole   atomic.Bool // what is sent gets lost, and nobody is told
	lost   atomic.Int32
	slow   atomic.Int64 // how long the next commit takes to reach the server
	slowed atomic.Int32
	mu     sync.Mutex
	conns  []net.Conn
}

// through puts a proxy in front of the server of an address.
func through(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, server: u.Host}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.cut()
	})
	u.Host = l.Addr().String()
	// The text of a commit goes over the wire each time.
	return p, u.String() + "&default_query_exec_mode=cache_describe"
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var deaf atomic.Bool // the client hears nothing more
	var gone atomic.Bool // something was lost: nothing gets through any more
	swallow := func() bool {
		if p.hole.Load() && !gone.Swap(true) {
			p.lost.Add(1)
		}
		return gone.Load()
	}
	go func() {
		defer client.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			if err == nil && swallow() {
				continue
			}
			if n > 0 && deaf.Load() {
				// The server has committed and says so.
				if bytes.Contains(b[:n], []byte("COMMIT\x00")) {
					p.cuts.Add(1)
					return
				}
				deaf.Store(false) // it was only asked what a commit looks like
				p.after.Add(1)
			}
			if n > 0 {
				if _, err := client.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err == nil && swallow() {
			continue
		}
		if n > 0 && bytes.Contains(b[:n], []byte("COMMIT")) {
			if d := time.Duration(p.slow.Swap(0)); d > 0 {
				p.slowed.Add(1)
				time.Sleep(d)
			}
			if p.before.Add(-1) >= 0 {
				p.cuts.Add(1)
				return
			}
			if p.after.Add(-1) >= 0 {
				deaf.Store(true)
			}
		}
		if n > 0 {
			if _, err := server.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
