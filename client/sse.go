package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxFrame bounds one frame of a stream.
const maxFrame = 256 << 20

// frame is one server-sent event.
type frame struct {
	id   string
	name string
	data []byte
}

// frames reads server-sent events. Lines end in LF or CRLF; a lone CR, which no
// host of this protocol sends, is taken as part of its line.
type frames struct {
	r     *bufio.Reader
	alive func() // called for every line: the stream is not dead

	retry time.Duration // what the host asks to wait before a reconnect; 0 for nothing
	seen  int           // blocks and comments so far
	line  []byte
}

func newFrames(r io.Reader, alive func()) *frames {
	return &frames{r: bufio.NewReaderSize(r, 32<<10), alive: alive}
}

// next returns the next frame that carries data. A frame that the connection
// broke off in is dropped: it will be sent again. io.EOF means that the host
// ended the stream in order.
func (s *frames) next() (frame, error) {
	var f frame
	size, any := 0, false
	for {
		if err := s.readLine(); err != nil {
			return frame{}, err
		}
		s.alive()
		if len(s.line) == 0 {
			s.seen++
			if any {
				return f, nil
			}
			f = frame{}
			continue
		}
		if size += len(s.line); size > maxFrame {
			return frame{}, fmt.Errorf("%w: a frame has more than %d bytes", ErrAnswer, maxFrame)
		}
		name, value, _ := bytes.Cut(s.line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "id":
			f.id = string(value)
		case "event":
			f.name = string(value)
		case "data":
			if any {
				f.data = append(f.data, '\n')
			}
			f.data, any = append(f.data, value...), true
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// readLine reads a line of any length into s.line, without its end.
func (s *frames) readLine() error {
	s.line = s.line[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		s.line = append(s.line, part...)
		switch {
		case err == nil:
			s.line = bytes.TrimSuffix(s.line[:len(s.line)-1], []byte{'\r'})
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case len(s.line) > maxFrame:
			return fmt.Errorf("%w: a line has more than %d bytes", ErrAnswer, maxFrame)
		}
	}
}
