package fermata_test

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// deaf opens a stream and never reads it.
func (s *server) deaf(id string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.http.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err = fmt.Fprintf(c, "GET /runs/%s/events?streamMode=debug HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", seg(id), testKey)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSlowSubscribersCostNobodyElse lets a run say far more than the buffers of
// a connection hold, to readers that do not read and to one that does.
func TestSlowSubscribersCostNobodyElse(t *testing.T) {
	const (
		slow  = 24
		piece = 128 << 10
		n     = 160 // 20 MB for each subscriber
	)
	say := make(chan string)
	s := start(t, func(c *fermata.Config) { c.Nodes = append(c.Nodes, speaker(say)) })
	s.register(flow("talk", []any{step("a", "test.speaker", nil)}, []any{}))
	id := s.run("talk")
	before := heap()
	for range slow {
		s.deaf(id)
	}
	client := crowd(t)
	p := &tap{}
	if err := p.open(client, s, id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.toEnd() }()
	text := strings.Repeat("x", piece)
	for range n {
		select {
		case say <- text:
		case <-time.After(hang):
			t.Fatal("a slow subscriber holds the run up")
		}
	}
	// What is held for those who do not read: not the log for each of them.
	if grown := int64(heap()) - int64(before); grown > slow*n*piece/4 {
		t.Errorf("the heap has grown by %d MB for %d subscribers who do not read %d MB", grown>>20, slow, n*piece>>20)
	}
	close(say)
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(hang):
		t.Fatal("a slow subscriber holds another one up")
	}
	s.await(id, "completed")
}
