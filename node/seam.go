package node

import (
	"errors"
	"fmt"
)

// SeamKind is the mechanism by which an effect leaves the host, not what it is
// for (spec v2 replay.md §The effect-seam manifest).
type SeamKind string

// The kinds of seam. SeamOther is for what the others do not name (raw TCP, gRPC,
// a file, a device) and wants a Note that names it.
const (
	SeamHTTP     SeamKind = "http"
	SeamSMTP     SeamKind = "smtp"
	SeamQueue    SeamKind = "queue"
	SeamStorage  SeamKind = "storage"
	SeamProvider SeamKind = "provider-sdk"
	SeamWebhooks SeamKind = "webhook-fanout"
	SeamOther    SeamKind = "other"
)

// Seam is one way out of the host: a place at which something becomes observable
// outside a run's own log. Every one is listed at GET /host/effect-seams, and one
// that is not listed cannot be passed (Services.Guard, Services.Effect).
type Seam struct {
	Name string // unique in a host, dotted segments such as "acme.mail.smtp"
	Kind SeamKind
	// GuardedBy says what keeps a replay from passing; default: the host's guard.
	GuardedBy string
	// BranchReFires says that a fork in branch mode makes the effect anew.
	BranchReFires bool
	Note          string
}

// maxSeamText bounds what a seam says of itself, in bytes.
const maxSeamText = 512

// Check says what is wrong with a seam.
func (s Seam) Check() error {
	switch {
	case !dotted(s.Name):
		return fmt.Errorf("seam %q: a name is letters, digits, - and _ in segments parted by dots", s.Name)
	case len(s.Name)+len(s.GuardedBy)+len(s.Note) > maxSeamText:
		return fmt.Errorf("seam %s: name, guardedBy and note are longer than %d bytes together", s.Name, maxSeamText)
	case s.Kind == SeamOther && s.Note == "":
		return fmt.Errorf("seam %s: the kind other needs a note that names the mechanism", s.Name)
	}
	switch s.Kind {
	case SeamHTTP, SeamSMTP, SeamQueue, SeamStorage, SeamProvider, SeamWebhooks, SeamOther:
		return nil
	case "":
		return errors.New("seam " + s.Name + ": it has no kind")
	}
	return fmt.Errorf("seam %s: there is no kind %q", s.Name, s.Kind)
}

func dotted(s string) bool {
	last := byte('.')
	for i := 0; i < len(s); i++ {
		c := s[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		if !word && (c != '.' || last == '.') {
			return false
		}
		last = c
	}
	return last != '.'
}
