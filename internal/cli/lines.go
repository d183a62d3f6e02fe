package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
)

// lineReader reads what a person types, line by line. One goroutine reads for
// the life of the process: a read of a terminal cannot be called off, so an
// answer that is no longer wanted must not swallow the next one's line.
type lineReader struct {
	in    io.Reader
	once  sync.Once
	lines chan string // closed at the end of the input
}

var errNoInput = errors.New("the input has ended")

// next returns the next line without its end.
func (l *lineReader) next(ctx context.Context) (string, error) {
	l.once.Do(func() {
		l.lines = make(chan string)
		go func() {
			defer close(l.lines)
			r := bufio.NewReader(l.in)
			for {
				s, err := r.ReadString('\n')
				if s != "" {
					l.lines <- strings.TrimRight(s, "\r\n")
				}
				if err != nil {
					return
				}
			}
		}()
	})
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	default:
	}
	select {
	case s, ok := <-l.lines:
		if !ok {
			return "", errNoInput
		}
		return s, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
