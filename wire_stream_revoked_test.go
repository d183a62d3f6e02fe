package fermata_test

import (
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// A stream does not outlive what let its reader in: a key that is revoked, a scope that
// a role gave. Whoever else reads the run reads on.
func TestWireStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	s := start(t, withV1, fermata.RecheckStreams(20*time.Millisecond))
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	made := s.do("POST", "/host/fermata/keys", map[string]any{"name": "reader", "scopes": []string{"runs:read"}}).want(t, 201)
	key := withKey(made.str("key"))
	_, opaque, _ := cutID(id)

	mine := s.subscribe(id, "")
	theirs := []*subscription{
		s.subscribe(id, "", key...), s.subscribe(id, "?streamMode=values", key...), s.subscribe(id, "?bufferMs=5000", key...),
		s.subscribeAt("/v1/runs/"+opaque+"/events", key...),
	}
	for _, sub := range theirs {
		sub.until(t, "alive") // it is let be while it may
	}
	s.do("POST", "/host/fermata/keys/"+made.str("keyId")+":revoke", nil).want(t, 200)
	for i, sub := range theirs {
		if !sub.until(t, "the credential no longer allows this") {
			t.Errorf("stream %d ends without a word", i)
		}
		if f, more := sub.next(); more {
			t.Errorf("stream %d goes on: %+v", i, f)
		}
	}
	s.do("POST", "/runs/"+seg(id)+"/cancel", nil).want(t, 200)
	for {
		f, more := mine.next()
		if !more {
			t.Fatal("the stream of somebody else ended, too")
		}
		if f.name == "run.cancelled" {
			break
		}
	}
}

// until reads up to a comment, and reports whether there is one.
func (s *subscription) until(t *testing.T, comment string) bool {
	t.Helper()
	for {
		f, more := s.next()
		if !more || f.comment == comment {
			return more
		}
	}
}
