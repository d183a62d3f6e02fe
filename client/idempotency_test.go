package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// keyBook is a host that notes the key and the body of every request.
type keyBook struct {
	mu           sync.Mutex
	keys, bodies []string
	answer       func(n int, w http.ResponseWriter)
}

func (b *keyBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.keys, b.bodies = append(b.keys, r.Header.Get("Idempotency-Key")), append(b.bodies, string(body))
	n := len(b.keys)
	b.mu.Unlock()
	b.answer(n, w)
}

// sent lists the keys that came in.
func (b *keyBook) sent() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.keys)
}

// every is each operation that changes something.
var every = map[string]func(context.Context, *Client) error{
	"create": func(ctx context.Context, c *Client) error {
		_, err := c.CreateRun(ctx, CreateRunRequest{WorkflowID: "w"})
		return err
	},
	"cancel": func(ctx context.Context, c *Client) error { _, err := c.CancelRun(ctx, testRun, ""); return err },
	"bulk": func(ctx context.Context, c *Client) error {
		_, err := c.BulkCancelRuns(ctx, []string{testRun}, "")
		return err
	},
	"pause":  func(ctx context.Context, c *Client) error { _, err := c.PauseRun(ctx, testRun, "", Drain); return err },
	"resume": func(ctx context.Context, c *Client) error { _, err := c.ResumeRun(ctx, testRun, ""); return err },
	"answer": func(ctx context.Context, c *Client) error {
		_, err := c.ResolveInterrupt(ctx, testRun, "gate", json.RawMessage(`{"action":"accept"}`))
		return err
	},
	"answer by token": func(ctx context.Context, c *Client) error {
		_, err := c.ResolveToken(ctx, "ow2.hs256.k.p.m", json.RawMessage(`{"action":"accept"}`))
		return err
	},
	"put": func(ctx context.Context, c *Client) error {
		_, err := c.PutWorkflow(ctx, json.RawMessage(`{"id":"w"}`))
		return err
	},
	"delete": func(ctx context.Context, c *Client) error { return c.DeleteWorkflow(ctx, "w") },
	"rotate": func(ctx context.Context, c *Client) error { _, err := c.RotateTokenKey(ctx); return err },
}

// Whatever changes something is one request, however often it is sent: the same
// key and the same bytes each time, and another key for the next call.
func TestEveryRepeatCarriesTheKeyOfItsCall(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z0-9._~-]{22,128}$`)
	for name, do := range every {
		t.Run(name, func(t *testing.T) {
			book := &keyBook{answer: func(n int, w http.ResponseWriter) {
				switch n {
				case 1:
					panic(http.ErrAbortHandler) // it may have happened; nobody knows
				case 2:
					answerJSON(w, 503, `{"error":"service_unavailable","message":"x"}`)
				case 3:
					w.Header().Set("Retry-After", "1")
					answerJSON(w, 409, `{"error":"idempotency_in_flight","message":"x"}`)
				default:
					answerJSON(w, 200, `{}`)
				}
			}}
			c, _ := dial(t, book)
			if err := do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if len(book.sent()) != 4 {
				t.Fatalf("sent %d times", len(book.sent()))
			}
			for i, k := range book.sent() {
				if !form.MatchString(k) || k != book.sent()[0] || book.bodies[i] != book.bodies[0] {
					t.Errorf("sent as %q %s, then as %q %s", book.sent()[0], book.bodies[0], k, book.bodies[i])
				}
			}
			if err := do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if book.sent()[4] == book.sent()[0] {
				t.Error("the next call has the key of the one before")
			}
		})
	}
}

// Without keys, what may have happened is not sent again.
func TestWithoutKeysNothingIsSentTwice(t *testing.T) {
	for name, do := range every {
		if name == "put" {
			continue // the same definition again changes nothing
		}
		book := &keyBook{answer: func(int, http.ResponseWriter) { panic(http.ErrAbortHandler) }}
		c, _ := dial(t, book, WithoutIdempotencyKeys())
		if err := do(t.Context(), c); !errors.Is(err, ErrUnreachable) || len(book.sent()) != 1 || book.sent()[0] != "" {
			t.Errorf("%s: keys %q, %v", name, book.sent(), err)
		}
	}
}

// The caller's own key goes before the client's, also where those are off.
func TestTheCallersKey(t *testing.T) {
	key := NewIdempotencyKey()
	for _, opts := range [][]Option{nil, {WithoutIdempotencyKeys()}} {
		book := &keyBook{answer: func(_ int, w http.ResponseWriter) { answerJSON(w, 200, `{}`) }}
		c, _ := dial(t, book, opts...)
		for range 2 {
			if err := every["create"](WithIdempotencyKey(t.Context(), key), c); err != nil {
				t.Fatal(err)
			}
		}
		if book.sent()[0] != key || book.sent()[1] != key {
			t.Errorf("sent %q", book.sent())
		}
		// A read is no operation that a key could name.
		if _, err := c.GetRun(WithIdempotencyKey(t.Context(), key), testRun); err != nil || book.sent()[2] != "" {
			t.Errorf("a read was sent with %q: %v", book.sent()[2], err)
		}
	}
}

// Another conflict is an answer, and no reason to ask again.
func TestAConflictIsNotRepeated(t *testing.T) {
	book := &keyBook{answer: func(_ int, w http.ResponseWriter) {
		answerJSON(w, 409, `{"error":"interrupt_already_resolved","message":"x"}`)
	}}
	c, _ := dial(t, book)
	if err := every["answer"](t.Context(), c); !IsStatus(err, 409) || len(book.sent()) != 1 {
		t.Errorf("sent %d times, %v", len(book.sent()), err)
	}
}

// A token is the credential: the client's key does not go with it.
func TestATokenGoesWithoutTheKey(t *testing.T) {
	var got seen
	c, _ := dial(t, recorder(200, `{"kind":"custom","key":"k","data":{}}`, &got))
	r, err := c.InspectToken(t.Context(), "ow2.hs256.k~1.p-_.m")
	if err != nil || r.Kind != "custom" || got.uri != "/interrupts/ow2.hs256.k~1.p-_.m" || got.header.Get("Authorization") != "" {
		t.Errorf("%+v %v", got, err)
	}
	if err := every["answer by token"](t.Context(), c); err != nil || got.header.Get("Authorization") != "" {
		t.Errorf("%+v %v", got, err)
	}
}
