package client

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why a request is no delivery to act on.
var (
	// ErrSignature: no signature of the request fits its bytes and a secret.
	ErrSignature = errors.New("client: the webhook's signature does not fit")
	// ErrTimestamp: the request was signed too long ago, or in the future.
	ErrTimestamp = errors.New("client: the webhook was not signed just now")
	// ErrScheme: the request names a signature scheme that is not known.
	ErrScheme = errors.New("client: the webhook's signature scheme is not known")
)

// webhookAge is how far the time of a signature may be from the clock here.
const webhookAge = 5 * time.Minute

// NewWebhookSecret makes a secret of 32 random bytes that serves both schemes.
func NewWebhookSecret() string {
	var key [32]byte
	rand.Read(key[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// Delivery is a request of a host that was verified.
type Delivery struct {
	WebhookID string          // the subscription, from a header that is not signed
	EventType string          // such as run.completed
	RunID     string          // tenant/opaque
	Sequence  int64           // of the event in the run's log
	Event     json.RawMessage // as the run's log has it

	// ID is the same in every attempt at one delivery; empty unless the
	// subscription has asked for standard-webhooks-1.
	ID string

	// Challenge is set, and nothing else but ID, if the host asks whether this
	// endpoint wants deliveries. A 2xx answer of {"challenge": …} says that it does.
	Challenge string
}

// Key names the event that was delivered, whatever the attempt: who has acted on it
// once can drop it the next time. It holds nothing but what was signed, so that
// nobody can send a delivery again under another key.
func (d *Delivery) Key() string { return d.RunID + " " + strconv.FormatInt(d.Sequence, 10) }

// VerifyWebhook checks a request to a webhook's URL: that it was signed with one of
// the secrets, over these very bytes, within five minutes of now. While a secret is
// rotated, give the new one and the old one.
func VerifyWebhook(h http.Header, body []byte, now time.Time, secrets ...string) (*Delivery, error) {
	var err error
	if h.Get("webhook-signature") != "" {
		if err = verifyStandard(h, body, now, secrets); err == nil {
			return delivery(h, body, h.Get("webhook-id"))
		}
	}
	family := "OpenWOP-"
	if h.Get(family+"Signature") == "" {
		family = "X-openwop-" // of hosts that serve the major before, too
	}
	if h.Get(family+"Signature") == "" && err != nil {
		return nil, err
	}
	if err := verifyV1(h, family, body, now, secrets); err != nil {
		return nil, err
	}
	return delivery(h, body, "")
}

func verifyV1(h http.Header, family string, body []byte, now time.Time, secrets []string) error {
	if h.Get(family+"Signature-Algorithm") != "v1" {
		return ErrScheme
	}
	stamp := h.Get(family + "Timestamp")
	if err := recent(stamp, now); err != nil {
		return err
	}
	sent, err := hex.DecodeString(strings.TrimPrefix(h.Get(family+"Signature"), "sha256="))
	if err != nil {
		return ErrSignature
	}
	fits := false
	for _, s := range secrets {
		fits = s != "" && hmac.Equal(sum([]byte(s), stamp+".", body), sent) || fits
	}
	if !fits {
		return ErrSignature
	}
	return nil
}

func verifyStandard(h http.Header, body []byte, now time.Time, secrets []string) error {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	if id == "" || strings.Contains(id, ".") {
		return ErrSignature
	}
	if err := recent(stamp, now); err != nil {
		return err
	}
	fits := false
	for _, entry := range strings.Fields(h.Get("webhook-signature")) {
		version, text, _ := strings.Cut(entry, ",")
		sent, err := base64.StdEncoding.DecodeString(text)
		if version != "v1" || err != nil {
			continue // of a scheme that is not known here
		}
		for _, s := range secrets {
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
			if err != nil || len(key) < 24 {
				continue
			}
			fits = hmac.Equal(sum(key, id+"."+stamp+".", body), sent) || fits
		}
	}
	if !fits {
		return ErrSignature
	}
	return nil
}

func sum(key []byte, prefix string, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(prefix))
	m.Write(body)
	return m.Sum(nil)
}

// recent holds the time of a signature against the clock here.
func recent(stamp string, now time.Time) error {
	n, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(n, 0)).Abs() > webhookAge {
		return ErrTimestamp
	}
	return nil
}

// delivery reads a body that was verified.
func delivery(h http.Header, body []byte, id string) (*Delivery, error) {
	var doc struct {
		Type      string          `json:"type"`
		Challenge string          `json:"challenge"`
		RunID     string          `json:"runId"`
		Event     json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("client: the webhook's body: %w", err)
	}
	if doc.Type == "openwop.webhook.verification" && id != "" {
		return &Delivery{ID: id, Challenge: doc.Challenge}, nil
	}
	var e struct {
		Type     string `json:"type"`
		Sequence int64  `json:"sequence"`
	}
	if err := json.Unmarshal(doc.Event, &e); err != nil {
		return nil, fmt.Errorf("client: the webhook's event: %w", err)
	}
	hook := h.Get("OpenWOP-Webhook-Id")
	if hook == "" {
		hook = h.Get("X-openwop-Webhook-Id")
	}
	return &Delivery{WebhookID: hook, EventType: e.Type, RunID: doc.RunID, Sequence: e.Sequence, Event: doc.Event, ID: id}, nil
}
