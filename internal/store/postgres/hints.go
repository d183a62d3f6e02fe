package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// Hints go from replica to replica by NOTIFY, for whoever is set to listen. NOTIFY
// locks the whole database from its transaction's end to its commit's, so no transaction that
// writes anything notifies: once a group is committed, what it was about goes out on a
// connection of its own, together with all that has gathered meanwhile. A hint that is
// lost costs the moment until the next look.
const (
	hintChannel = "fermata"
	listen      = `LISTEN ` + hintChannel
	sendHint    = `SELECT pg_notify($1, $2)`

	mostHints   = 2048                 // that wait to be sent; more are dropped
	hintBytes   = 7900                 // of one notification: the server takes less than 8000
	hintPause   = 5 * time.Millisecond // between two that one replica sends
	hintsAtHand = 1024                 // that wait for the engine; more are dropped
	hearFor     = 30 * time.Second     // without a word the connection is asked whether it is there
	hintTimeout = 5 * time.Second
	firstWait   = 100 * time.Millisecond // between tries to connect
	longestWait = 10 * time.Second
)

// Kinds of hints: the first byte of a line of a notification, whose first line says
// which store it is from.
const (
	hintRun      = 'e'
	hintInstance = 't'
	hintWork     = 'w'
)

type hints struct {
	from string
	cfg  *pgx.ConnConfig
	log  *slog.Logger
	out  chan store.Hint

	mu      sync.Mutex
	pending map[string]bool
	wake    chan struct{}

	ctx    context.Context
	stop   context.CancelFunc
	sender sync.WaitGroup
	heard  sync.WaitGroup
	quit   chan struct{} // the sender sends what is left
}

func startHints(address string, log *slog.Logger) (*hints, error) {
	cfg, err := parse(address, Options{Connections: 1})
	if err != nil {
		return nil, fmt.Errorf("to listen: %w", err)
	}
	c := cfg.ConnConfig
	// Nothing depends on a notification: it need not wait for a disk.
	c.RuntimeParams["synchronous_commit"] = "off"
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &hints{
		from: rand.Text(), cfg: c, log: log, out: make(chan store.Hint, hintsAtHand),
		pending: map[string]bool{}, wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.sender.Go(h.send)
	h.heard.Go(h.hear)
	return h, nil
}

// close sends what waits, if that is possible at once, and ends both connections.
func (h *hints) close() {
	if h == nil {
		return
	}
	close(h.quit)
	late := time.AfterFunc(time.Second, h.stop)
	h.sender.Wait()
	late.Stop()
	h.stop()
	h.heard.Wait()
}

// add has lines sent.
func (h *hints) add(lines ...string) {
	if len(lines) == 0 {
		return
	}
	h.mu.Lock()
	for _, l := range lines {
		if len(h.pending) < mostHints {
			h.pending[l] = true
		}
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// take empties what waits into texts of notifications.
func (h *hints) take() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for l := range h.pending {
		if b.Len() > 0 && b.Len()+1+len(l) > hintBytes {
			out = append(out, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(h.from)
		}
		b.WriteString("\n" + l)
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	clear(h.pending)
	return out
}

// send sends what gathers, one notification or a few at a time.
func (h *hints) send() {
	var conn *pgx.Conn
	defer func() { closeConn(conn) }()
	for last := false; !last; {
		select {
		case <-h.wake:
		case <-h.quit:
			last = true
		}
		texts := h.take()
		if len(texts) == 0 {
			continue
		}
		var err error
		if conn == nil {
			conn, err = h.connect()
		}
		if err == nil {
			err = h.notify(conn, texts)
		}
		if err != nil { // what is lost is found by the others' looks
			closeConn(conn)
			conn = nil
			h.log.Debug("other replicas could not be notified", "err", err)
			h.rest(time.Second)
			continue
		}
		h.rest(hintPause)
	}
}

func (h *hints) notify(conn *pgx.Conn, texts []string) error {
	ctx, done := context.WithTimeout(h.ctx, hintTimeout)
	defer done()
	b := &pgx.Batch{} // one implicit transaction
	for _, t := range texts {
		b.Queue(sendHint, hintChannel, t)
	}
	return conn.SendBatch(ctx, b).Close()
}

func (h *hints) connect() (*pgx.Conn, error) {
	ctx, done := context.WithTimeout(h.ctx, hintTimeout)
	defer done()
	return pgx.ConnectConfig(ctx, h.cfg.Copy())
}

func closeConn(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer done()
	conn.Close(ctx) //nolint:errcheck // it is not used again
}

// rest waits, unless everything ends.
func (h *hints) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.ctx.Done():
	case <-h.quit:
	}
}

// hear listens until everything ends, and connects again whenever it has to.
func (h *hints) hear() {
	for wait := firstWait; h.ctx.Err() == nil; {
		var began time.Time
		conn, err := h.connect()
		if err == nil {
			_, err = conn.Exec(h.ctx, listen)
		}
		if err == nil {
			began = time.Now()
			h.log.Debug("listening for other replicas")
			// What was said meanwhile is not known: everything may have changed.
			h.tell(store.Hint{All: true})
			err = h.follow(conn)
			wait = afterward(wait, time.Since(began))
		} else {
			wait = afterward(wait, 0)
		}
		closeConn(conn)
		if h.ctx.Err() == nil {
			h.log.Warn("other replicas cannot be listened to; what they do is found by looking, and it is tried again", "err", err)
			select {
			case <-h.ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

// afterward is the wait behind a connection that has lasted for a time. One that is let
// in and cut off at once, by a pooler say, is tried as seldom as one that is not let in.
func afterward(wait, lasted time.Duration) time.Duration {
	if lasted >= longestWait {
		return firstWait
	}
	return min(2*wait, longestWait)
}

// follow passes on what is heard, until the connection is gone.
func (h *hints) follow(conn *pgx.Conn) error {
	for {
		ctx, done := context.WithTimeout(h.ctx, hearFor)
		n, err := conn.WaitForNotification(ctx)
		quiet := ctx.Err() != nil
		done()
		switch {
		case h.ctx.Err() != nil:
			return h.ctx.Err()
		case err == nil:
			h.read(n.Payload)
		case quiet: // a connection may be gone without a word
			ctx, done := context.WithTimeout(h.ctx, hintTimeout)
			err := conn.Ping(ctx)
			done()
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// read passes on the hints of a notification, whoever sent it: what makes no sense is
// left out, and what is not true does no harm.
func (h *hints) read(text string) {
	from, rest, _ := strings.Cut(text, "\n")
	if from == h.from {
		return
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "" {
			continue
		}
		switch line[0] {
		case hintRun:
			if id, err := ids.ParseRun(line[1:]); err == nil {
				h.tell(store.Hint{Run: id})
			}
		case hintInstance:
			h.tell(store.Hint{Instance: line[1:]})
		case hintWork:
			h.tell(store.Hint{Work: true})
		}
	}
}

func (h *hints) tell(x store.Hint) {
	select {
	case h.out <- x:
	default:
	}
}

// Hints implements store.Replicas.
func (s *Store) Hints() <-chan store.Hint {
	if s.hints == nil {
		return nil
	}
	return s.hints.out
}

// hint lets other replicas know of a batch that has been committed, if there are any.
func (s *Store) hint(batch []*request) {
	if s.hints == nil || s.living.Load() < 2 {
		return
	}
	now := time.Now()
	var lines []string
	for _, r := range batch {
		for i := range r.steps {
			x := &r.steps[i]
			if r.err != nil {
				continue
			}
			if len(x.Events) > 0 && !x.Create { // nobody watches what was not there
				lines = append(lines, string(hintRun)+x.Row.ID.String())
			}
			if x.Tell != "" {
				lines = append(lines, string(hintInstance)+x.Tell)
			}
			if r := &x.Row; r.Instance == "" && !r.WakeAt.IsZero() && !r.WakeAt.After(now) {
				lines = append(lines, string(hintWork))
			}
		}
	}
	s.hints.add(lines...)
}
