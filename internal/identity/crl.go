package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	hashing "hash"
	"os"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

// lookEvery is how often files of revocation lists are looked at for a change.
const lookEvery = 2 * time.Second

// revocationLists are certificate revocation lists (RFC 5280 §5) kept in files.
type revocationLists struct {
	files []string
	now   func() time.Time

	mu     sync.RWMutex
	lists  []*x509.RevocationList
	marks  []mark
	looked time.Time
	round  uint32 // counts changes
	fault  error  // why the newest files are not in use
}

// mark tells one state of a file from another.
type mark struct {
	at   time.Time
	size int64
}

// refresh reads the files again if they have changed. What cannot be read leaves
// the lists as they were, for as long as they are good.
func (l *revocationLists) refresh() {
	l.mu.RLock()
	now := l.now()
	soon := now.Sub(l.looked) < lookEvery && !now.Before(l.looked)
	l.mu.RUnlock()
	if soon {
		return
	}
	l.mu.Lock()
	l.looked = now
	changed := false
	for i, f := range l.files {
		st, err := os.Stat(f)
		changed = changed || err != nil || l.marks[i] != mark{st.ModTime(), st.Size()}
	}
	l.mu.Unlock()
	if !changed {
		return
	}
	if err := l.read(); err != nil {
		l.mu.Lock()
		l.fault = err
		l.mu.Unlock()
	}
}

// read reads all files, or changes nothing.
func (l *revocationLists) read() error {
	var lists []*x509.RevocationList
	marks := make([]mark, len(l.files))
	for i, f := range l.files {
		st, err := os.Stat(f)
		if err != nil {
			return err
		}
		marks[i] = mark{st.ModTime(), st.Size()}
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		found, err := parseLists(data)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		lists = append(lists, found...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists, l.marks, l.fault, l.looked = lists, marks, nil, l.now()
	l.round++
	return nil
}

func parseLists(data []byte) ([]*x509.RevocationList, error) {
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		one, err := parseList(data)
		return []*x509.RevocationList{one}, err
	}
	var out []*x509.RevocationList
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			break
		}
		one, err := parseList(b.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no revocation list in it")
	}
	return out, nil
}

// parseList reads one list. One that holds a part of what is revoked only says so
// in a critical extension, and is refused: it would let in what another part holds.
func parseList(der []byte) (*x509.RevocationList, error) {
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	for _, e := range list.Extensions {
		if e.Critical {
			return nil, fmt.Errorf("the revocation list has the critical extension %s, which is not understood", e.Id)
		}
	}
	return list, nil
}

// stamp finishes a hash so that it differs once the lists have changed.
func (l *revocationLists) stamp(h hashing.Hash) []byte {
	if l != nil {
		l.mu.RLock()
		defer l.mu.RUnlock()
		h.Write([]byte{byte(l.round), byte(l.round >> 8), byte(l.round >> 16), byte(l.round >> 24)})
	}
	return h.Sum(nil)
}

// check holds every certificate of a chain below its root against the list of its
// authority, and returns until when the lists say anything. A list that is
// missing, not signed by the authority or out of date lets nobody in.
func (l *revocationLists) check(chain []*x509.Certificate) (until time.Time, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for i := 0; i+1 < len(chain); i++ {
		list := l.of(chain[i+1])
		if list == nil {
			p := problem.New(problem.ServiceUnavailable, "whether the certificate is revoked cannot be said now")
			p.Cause = fmt.Errorf("there is no current revocation list of %s (last fault: %w)", chain[i+1].Subject, l.fault)
			if l.fault == nil {
				p.Cause = fmt.Errorf("there is no current revocation list of %s", chain[i+1].Subject)
			}
			return until, p
		}
		for _, e := range list.RevokedCertificateEntries {
			if e.SerialNumber.Cmp(chain[i].SerialNumber) == 0 {
				return until, problem.New(problem.CredentialRevoked, "the certificate has been revoked")
			}
		}
		if until.IsZero() || list.NextUpdate.Before(until) {
			until = list.NextUpdate
		}
	}
	return until, nil
}

// of finds the newest list of an authority that is current.
func (l *revocationLists) of(ca *x509.Certificate) *x509.RevocationList {
	now := l.now()
	var best *x509.RevocationList
	for _, list := range l.lists {
		if now.Before(list.ThisUpdate) || !now.Before(list.NextUpdate) || list.CheckSignatureFrom(ca) != nil {
			continue
		}
		if best == nil || list.ThisUpdate.After(best.ThisUpdate) {
			best = list
		}
	}
	return best
}
