package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
)

// Conn is one keep-alive connection that sends prebuilt requests and reads as
// little of the answers as it can. Not safe for concurrent use.
type Conn struct {
	c    net.Conn
	in   *bufio.Reader
	out  []byte
	body []byte
}

// Dial connects to a server.
func Dial(addr string) (*Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{c: c, in: bufio.NewReaderSize(c, 4096)}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.c.Close() }

// send writes a request. body may be nil.
func (c *Conn) send(method, path string, body []byte) error {
	b := append(c.out[:0], method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+apiKey...)
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	b = append(b, body...)
	c.out = b
	_, err := c.c.Write(b)
	return err
}

// Do makes one request. The body is valid until the next one.
func (c *Conn) Do(method, path string, body []byte) (status int, answer []byte, err error) {
	if err := c.send(method, path, body); err != nil {
		return 0, nil, err
	}
	status, length, err := c.header()
	if err != nil {
		return 0, nil, err
	}
	if length < 0 {
		return 0, nil, errors.New("an answer without a length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, c.body, err
}

// header reads an answer up to its body. A negative length means chunks.
func (c *Conn) header() (status, length int, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first:
			if len(line) < 12 {
				return 0, 0, fmt.Errorf("no HTTP answer: %q", line)
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, 0, err
			}
		case len(line) == 0:
			return status, length, nil
		case len(line) > 15 && bytes.EqualFold(line[:15], []byte("content-length:")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[15:]))); err != nil {
				return 0, 0, err
			}
		}
	}
}

// Stream opens an event stream. The reader ends where the stream does.
func (c *Conn) Stream(path string) (io.Reader, error) {
	if err := c.send("GET", path, nil); err != nil {
		return nil, err
	}
	status, length, err := c.header()
	if err != nil {
		return nil, err
	}
	if status != 200 || length >= 0 {
		return nil, fmt.Errorf("GET %s: no stream but status %d", path, status)
	}
	return httputil.NewChunkedReader(c.in), nil
}

// member finds the value of the first string member of that name in a JSON
// text in which neither needs escapes.
func member(doc []byte, name string) []byte {
	i := bytes.Index(doc, []byte(`"`+name+`":"`))
	if i < 0 {
		return nil
	}
	v := doc[i+len(name)+4:]
	if end := bytes.IndexByte(v, '"'); end >= 0 {
		return v[:end]
	}
	return nil
}
