package bench

import (
	"bytes"
	"net"
	"net/http"
	"time"
)

// eventsPerWrite is how many events the floor's handler writes at once, about
// as many as the host does when a run writes as fast as it can.
const eventsPerWrite = 128

// streamFloor takes the time in which a bare net/http handler sends the same
// bytes to as many subscribers. It shares the machine with its readers, as the
// host does.
func streamFloor(subscribers, events int, size int64) (time.Duration, error) {
	frame := append([]byte("data: "), bytes.Repeat([]byte("x"), int(max(size-8, 1)))...)
	frame = append(frame, "\n\n"...)
	release := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		rc.Flush() //nolint:errcheck // a write would fail as well
		<-release
		many := bytes.Repeat(frame, eventsPerWrite)
		for left := events; left > 0; left -= eventsPerWrite {
			w.Write(many[:len(frame)*min(left, eventsPerWrite)]) //nolint:errcheck // the reader would notice
			rc.Flush()                                           //nolint:errcheck // as above
		}
	})}
	go srv.Serve(l) //nolint:errcheck // it ends with Close
	defer srv.Close()
	subs, err := subscribe(l.Addr().String(), "/", subscribers)
	if err != nil {
		return 0, err
	}
	defer subs.close()
	begun := time.Now()
	close(release)
	if _, _, err := subs.drain(); err != nil {
		return 0, err
	}
	return time.Since(begun), nil
}
