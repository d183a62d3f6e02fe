package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// trips passes connections to a PostgreSQL server on and counts the round trips a
// client makes: each ends with a message after which the server must answer before the
// client goes on (Sync, or a simple query). It counts the executions of COMMIT, too.
type trips struct {
	address string // for hosts
	trips   atomic.Int64
	commits atomic.Int64
	out, in atomic.Int64 // bytes to the server, and back

	l      net.Listener
	server string
	mu     sync.Mutex
	conns  []net.Conn
}

func countTrips(address string) (*trips, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &trips{l: l, server: u.Host}
	u.Host = l.Addr().String()
	t.address = u.String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go t.pass(c)
		}
	}()
	return t, nil
}

// close ends every connection.
func (t *trips) close() {
	t.l.Close() //nolint:errcheck // nobody calls any more
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		c.Close() //nolint:errcheck // it may have ended
	}
}

func (t *trips) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", t.server)
	if err != nil {
		return
	}
	defer server.Close()
	t.mu.Lock()
	t.conns = append(t.conns, client, server)
	t.mu.Unlock()
	go func() {
		defer client.Close()
		io.Copy(client, counted{server, &t.in}) //nolint:errcheck // either end may close
	}()
	t.messages(bufio.NewReaderSize(client, 64<<10), server) //nolint:errcheck // either end may close
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// messages passes a client's messages on, all that have come at once in one write.
// The first has no type.
func (t *trips) messages(in *bufio.Reader, server io.Writer) error {
	out := bufio.NewWriterSize(server, 64<<10)
	texts := map[string]string{} // of prepared statements
	for first := true; ; first = false {
		head := 5
		if first {
			head = 4
		}
		h := make([]byte, head)
		if _, err := io.ReadFull(in, h); err != nil {
			return err
		}
		length := int(binary.BigEndian.Uint32(h[head-4:])) - 4
		if length < 0 || length > 64<<20 {
			return errors.New("not a message")
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		if !first {
			t.look(h[0], body, texts)
		}
		t.out.Add(int64(head + length))
		out.Write(h)    //nolint:errcheck // Flush says it
		out.Write(body) //nolint:errcheck // Flush says it
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// look counts what a message stands for: Parse names a text, Bind is the execution of
// one (each is executed once), Sync and Query end a round trip.
func (t *trips) look(kind byte, body []byte, texts map[string]string) {
	parts := bytes.SplitN(body, []byte{0}, 3)
	switch {
	case kind == 'P' && len(parts) == 3:
		texts[string(parts[0])] = string(parts[1])
	case kind == 'B' && len(parts) == 3:
		if strings.EqualFold(texts[string(parts[1])], "commit") {
			t.commits.Add(1)
		}
	case kind == 'S':
		t.trips.Add(1)
	case kind == 'Q':
		t.trips.Add(1)
		if strings.EqualFold(string(parts[0]), "commit") {
			t.commits.Add(1)
		}
	}
}
