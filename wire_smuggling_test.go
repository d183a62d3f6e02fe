package fermata_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends bytes over a connection of its own and reads every answer to them until
// the host closes it, or wanted answers have come.
func (s *server) raw(wanted int, text string) []*http.Response {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.http.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(hang))
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	var out []*http.Response
	for range wanted {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			break
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, res)
		if res.Close {
			_ = conn.SetReadDeadline(time.Now().Add(hang))
			if rest, _ := io.ReadAll(in); len(rest) > 0 {
				s.t.Fatalf("behind the last answer: %q", rest)
			}
			break
		}
	}
	return out
}

// Where one request ends and the next begins is never a matter of opinion: what
// two readers could read in two ways is refused, or is the last of its connection.
// The hidden request would cancel a run.
func TestWireSmuggling(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	head := "POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + testKey + "\r\nContent-Type: application/json\r\n"
	hidden := "POST /runs/" + seg(id) + "/cancel HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + testKey + "\r\nContent-Length: 0\r\n\r\n"
	chunks := "0\r\n\r\n"
	for name, c := range map[string]struct {
		text string
		want []int // nothing behind these
	}{
		"two lengths":               {head + "Content-Length: 2\r\nContent-Length: 0\r\n\r\n{}" + hidden, []int{400}},
		"a list of lengths":         {head + "Content-Length: 2, 0\r\n\r\n{}" + hidden, []int{400}},
		"a length with a sign":      {head + "Content-Length: +2\r\n\r\n{}" + hidden, []int{400}},
		"a length below none":       {head + "Content-Length: -1\r\n\r\n" + hidden, []int{400}},
		"length and chunks":         {head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(chunks+hidden)) + chunks + hidden, []int{400}},
		"chunks alone":              {head + "Transfer-Encoding: chunked\r\n\r\n" + chunks + hidden, []int{400}},
		"chunks twice":              {head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + hidden, []int{501}},
		"another coding":            {head + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks + hidden, []int{501}},
		"identity":                  {head + "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}" + hidden, []int{501}},
		"a coding with a tab":       {head + "Transfer-Encoding: \tchunked\r\nContent-Length: 2\r\n\r\n" + chunks + hidden, []int{400}},
		"a space before the colon":  {head + "Content-Length : 2\r\n\r\n{}" + hidden, []int{400}},
		"a bare line feed":          {head + "X: a\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunks + hidden, []int{400}},
		"a bad chunk":               {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n" + hidden, []int{400}},
		"two hosts":                 {strings.Replace(head, "Host: localhost\r\n", "Host: localhost\r\nHost: evil.test\r\n", 1) + "Content-Length: 0\r\n\r\n" + hidden, []int{400}},
		"no host":                   {strings.Replace(head, "Host: localhost\r\n", "", 1) + "Content-Length: 0\r\n\r\n" + hidden, []int{400}},
		"a foreign host":            {strings.Replace(head, "localhost", "evil.test", 1) + "Content-Length: 0\r\n\r\n", []int{403}},
		"a foreign absolute target": {strings.Replace(head, "POST /runs ", "POST http://evil.test/runs ", 1) + "Content-Length: 0\r\n\r\n", []int{403}},
		"an upgrade":                {strings.Replace(head, "Host:", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nHost:", 1) + "Content-Length: 2\r\n\r\n{}", []int{400}},
		"another version":           {strings.Replace(head, "HTTP/1.1", "HTTP/9.9", 1) + "Content-Length: 0\r\n\r\n" + hidden, []int{505}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.as(t)
			more := 1
			if !strings.Contains(c.text, hidden) {
				more = 0 // the connection may go on
			}
			got := s.raw(len(c.want)+more, c.text)
			if len(got) != len(c.want) {
				t.Fatalf("%d answers, want %v", len(got), c.want)
			}
			for i, want := range c.want {
				if got[i].StatusCode != want {
					t.Errorf("answer %d is %d, want %d", i, got[i].StatusCode, want)
				}
			}
		})
	}
	if got := s.snapshot(id)["status"]; got != "waiting-approval" {
		t.Errorf("the hidden request was executed: the run is %v", got)
	}
	// A body on a request that has none ends with it; what follows is the next one.
	two := s.raw(2, "GET /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nAuthorization: Bearer "+testKey+"\r\n\r\nGET "+
		"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if len(two) != 2 || two[0].StatusCode != 200 || two[1].StatusCode != 404 {
		t.Errorf("%v", two)
	}
}
