package egress

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// zone is a name server whose answers for a name change from one question to
// the next: each question for an A record uses up one list of addresses, and
// the last list stays.
type zone struct {
	mu      sync.Mutex
	answers [][]string
	asked   int
}

func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go z.serve(server)
		return client, nil
	}}
}

// serve speaks DNS over a stream: each message follows its length.
func (z *zone) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, q); err != nil {
			return
		}
		a := z.reply(q)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

func (z *zone) reply(q []byte) []byte {
	end := 12
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	question := q[12 : end+5]
	var addrs []string
	if binary.BigEndian.Uint16(q[end+1:]) == 1 { // A
		z.mu.Lock()
		addrs = z.answers[min(z.asked, len(z.answers)-1)]
		z.asked++
		z.mu.Unlock()
	}
	out := append([]byte{q[0], q[1], 0x84, 0, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0}, question...)
	for _, s := range addrs {
		ip := netip.MustParseAddr(s).As4()
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, ip[:]...)
	}
	return out
}

// twins listens on the same port of an admitted and of a closed address.
func twins(t *testing.T) (port string, hits map[string]int) {
	t.Helper()
	hits = map[string]int{}
	var mu sync.Mutex
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(open.Addr().String())
	hidden, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		open.Close()
		t.Skip("this machine has no second loopback address")
	}
	for _, l := range []net.Listener{open, hidden} {
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) { mu.Lock(); hits[l.Addr().String()]++; mu.Unlock() },
		)}}
		s.Start()
		t.Cleanup(s.Close)
	}
	return port, hits
}

func TestRebinding(t *testing.T) {
	port, hits := twins(t)
	z := &zone{answers: [][]string{{"127.0.0.1"}, {"127.0.0.2"}}}
	g := guard(t, Options{Resolver: z.resolver()})
	u := "http://rebind.example.:" + port + "/"
	if _, err := get(t, g.Client(), u); err != nil {
		t.Fatal(err)
	}
	g.Close() // or the second call would use the first one's connection
	_, err := get(t, g.Client(), u)
	if reason, _ := DeniedReason(err); reason != Blocked {
		t.Errorf("after the answer changed: %v", err)
	}
	if hits["127.0.0.1:"+port] != 1 || hits["127.0.0.2:"+port] != 0 {
		t.Error(hits)
	}
}

func TestMixedAnswers(t *testing.T) {
	port, hits := twins(t)
	z := &zone{answers: [][]string{{"127.0.0.2", "127.0.0.1"}, {"127.0.0.2", "10.0.0.1"}}}
	g := guard(t, Options{Resolver: z.resolver()})
	u := "http://mixed.example.:" + port + "/"
	if _, err := get(t, g.Client(), u); err != nil {
		t.Fatal(err)
	}
	g.Close()
	if _, err := get(t, g.Client(), u); err == nil {
		t.Error("a name with closed addresses only was called")
	}
	if hits["127.0.0.1:"+port] != 1 || hits["127.0.0.2:"+port] != 0 {
		t.Error(hits)
	}
}

func TestUnknownName(t *testing.T) {
	z := &zone{answers: [][]string{{}}}
	_, err := get(t, guard(t, Options{Resolver: z.resolver()}).Client(), "http://nowhere.example./")
	if got := Describe(err); !strings.Contains(got, "could not be resolved") {
		t.Error(got, err)
	}
}
