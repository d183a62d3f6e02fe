package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/go-json-experiment/json"
)

// verifyWithin is how long an endpoint has to answer its verification.
const verifyWithin = 10 * time.Second

// ErrUnverified says why an endpoint was not taken: it did not answer as somebody
// who wants deliveries. Its text names no address.
type ErrUnverified struct{ Why string }

func (e ErrUnverified) Error() string {
	return "the endpoint did not confirm that it wants deliveries: " + e.Why
}

// Verify asks an endpoint, once, whether it wants deliveries signed with a secret
// (spec v2 webhooks.md §Standard Webhooks, Endpoint verification).
func (w *Worker) Verify(ctx context.Context, url, secret string) error {
	ctx, done := context.WithTimeout(ctx, verifyWithin)
	defer done()
	challenge := base64.RawURLEncoding.EncodeToString(random(24))
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}{"openwop.webhook.verification", challenge})
	if err != nil {
		return err
	}
	h := http.Header{"Content-Type": {"application/json"}}
	id := "verify-" + base64.RawURLEncoding.EncodeToString(random(15))
	signStandard(h, id, strconv.FormatInt(w.cfg.Clock.Now().Unix(), 10), body, secret)
	res, err := w.send(ctx, url, h, body)
	if err != nil {
		return ErrUnverified{egress.Describe(err)}
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return ErrUnverified{"it answered HTTP " + strconv.Itoa(res.StatusCode)}
	}
	text, err := egress.ReadAll(res.Body, maxReply)
	if err != nil {
		return ErrUnverified{egress.Describe(err)}
	}
	var answer struct {
		Challenge *string `json:"challenge"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Challenge == nil {
		return ErrUnverified{"its answer is no JSON object with a challenge"}
	}
	if !hmac.Equal([]byte(*answer.Challenge), []byte(challenge)) {
		return ErrUnverified{"its answer holds another challenge"}
	}
	return nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
