package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
)

// A client that sends all of a body before it looks for an answer finds the
// refusal, and not a connection that was reset.
func TestTooLargeBodyIsAnswered(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := ReadBody(w, r, 1024)
		Fail(w, problem.From(err))
	}))
	defer s.Close()
	body := strings.Repeat("x", 8<<20)
	for name, head := range map[string]string{
		"length":  fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", head); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 413 || !res.Close {
			t.Errorf("%s: %+v %v", name, res, err)
		}
		c.Close()
	}
	// One that asks first is told before it sends anything.
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 413 {
		t.Errorf("%+v %v", res, err)
	}
}
