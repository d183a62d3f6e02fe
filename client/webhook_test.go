package client

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

const hookBody = `{"runId":"acme/0123456789abcdef","event":{"eventId":"0123456789abcdef-7","runId":"acme/0123456789abcdef","sequence":7,"type":"run.completed","timestamp":"2026-03-01T12:00:00.000Z","schemaVersion":1,"engineVersion":1,"payload":{}}}`

var hookTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// signedAs makes the headers of a delivery as a host does (spec v2 webhooks.md).
func signedAs(family, body string, at time.Time, v1 string, standard ...string) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h := http.Header{}
	h.Set(family+"Webhook-Id", "acme/fedcba9876543210")
	h.Set(family+"Event-Type", "run.completed")
	h.Set(family+"Timestamp", stamp)
	h.Set(family+"Signature-Algorithm", "v1")
	h.Set(family+"Signature", "sha256="+hex.EncodeToString(sum([]byte(v1), stamp+".", []byte(body))))
	entries := ""
	for _, s := range standard {
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		entries += " v1," + base64.StdEncoding.EncodeToString(sum(key, "delivery-0123456789."+stamp+".", []byte(body)))
	}
	if entries != "" {
		h.Set("webhook-id", "delivery-0123456789")
		h.Set("webhook-timestamp", stamp)
		h.Set("webhook-signature", entries[1:])
	}
	return h
}

func TestVerifyWebhook(t *testing.T) {
	fresh, old := NewWebhookSecret(), NewWebhookSecret()
	with := func(h http.Header, change func(http.Header)) http.Header {
		change(h)
		return h
	}
	v1 := func() http.Header { return signedAs("OpenWOP-", hookBody, hookTime, "s3cret") }
	both := func() http.Header { return signedAs("OpenWOP-", hookBody, hookTime, old, fresh, old) }
	for name, c := range map[string]struct {
		h       http.Header
		body    string
		now     time.Time
		secrets []string
		want    error
		id      string
	}{
		"v1":                   {v1(), hookBody, hookTime, []string{"s3cret"}, nil, ""},
		"at the edge":          {v1(), hookBody, hookTime.Add(webhookAge), []string{"s3cret"}, nil, ""},
		"of the major before":  {signedAs("X-openwop-", hookBody, hookTime, "s3cret"), hookBody, hookTime, []string{"s3cret"}, nil, ""},
		"too old":              {v1(), hookBody, hookTime.Add(webhookAge + time.Second), []string{"s3cret"}, ErrTimestamp, ""},
		"of the future":        {v1(), hookBody, hookTime.Add(-webhookAge - time.Second), []string{"s3cret"}, ErrTimestamp, ""},
		"another body":         {v1(), hookBody + " ", hookTime, []string{"s3cret"}, ErrSignature, ""},
		"another secret":       {v1(), hookBody, hookTime, []string{"S3cret"}, ErrSignature, ""},
		"no secret":            {v1(), hookBody, hookTime, nil, ErrSignature, ""},
		"an empty secret":      {signedAs("OpenWOP-", hookBody, hookTime, ""), hookBody, hookTime, []string{""}, ErrSignature, ""},
		"another time":         {with(v1(), func(h http.Header) { h.Set("OpenWOP-Timestamp", strconv.FormatInt(hookTime.Unix()+1, 10)) }), hookBody, hookTime, []string{"s3cret"}, ErrSignature, ""},
		"no time":              {with(v1(), func(h http.Header) { h.Del("OpenWOP-Timestamp") }), hookBody, hookTime, []string{"s3cret"}, ErrTimestamp, ""},
		"an unknown scheme":    {with(v1(), func(h http.Header) { h.Set("OpenWOP-Signature-Algorithm", "v2") }), hookBody, hookTime, []string{"s3cret"}, ErrScheme, ""},
		"no scheme":            {with(v1(), func(h http.Header) { h.Del("OpenWOP-Signature-Algorithm") }), hookBody, hookTime, []string{"s3cret"}, ErrScheme, ""},
		"nothing":              {http.Header{}, hookBody, hookTime, []string{"s3cret"}, ErrScheme, ""},
		"rotation, new secret": {both(), hookBody, hookTime, []string{fresh}, nil, "delivery-0123456789"},
		"rotation, old secret": {both(), hookBody, hookTime, []string{old}, nil, "delivery-0123456789"},
		"standard, another id": {with(signedAs("x-", hookBody, hookTime, "", fresh), func(h http.Header) { h.Set("webhook-id", "delivery-0123456788") }), hookBody, hookTime, []string{fresh}, ErrSignature, ""},
		"standard, too old":    {signedAs("x-", hookBody, hookTime, "", fresh), hookBody, hookTime.Add(time.Hour), []string{fresh}, ErrTimestamp, ""},
		"standard, asymmetric": {with(signedAs("x-", hookBody, hookTime, "", fresh), func(h http.Header) {
			h.Set("webhook-signature", strings.Replace(h.Get("webhook-signature"), "v1,", "v1a,", 1))
		}), hookBody, hookTime, []string{fresh}, ErrSignature, ""},
		"standard, another one's": {signedAs("x-", hookBody, hookTime, "", old), hookBody, hookTime, []string{fresh}, ErrSignature, ""},
	} {
		d, err := VerifyWebhook(c.h, []byte(c.body), c.now, c.secrets...)
		if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
			continue
		}
		if err == nil && (d.RunID != "acme/0123456789abcdef" || d.Sequence != 7 || d.EventType != "run.completed" || d.WebhookID != "acme/fedcba9876543210" || d.ID != c.id) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestReceiver(t *testing.T) {
	secret := NewWebhookSecret()
	var taken []string
	refuse := true
	r := &Receiver{Secrets: []string{secret}, Now: func() time.Time { return hookTime }, Take: func(_ context.Context, d *Delivery) error {
		if refuse {
			return errors.New("not now")
		}
		taken = append(taken, d.Key())
		return nil
	}}
	send := func(body string, h http.Header) *httptest.ResponseRecorder {
		q := httptest.NewRequest("POST", "/", strings.NewReader(body))
		q.Header = h
		w := httptest.NewRecorder()
		r.ServeHTTP(w, q)
		return w
	}
	good := func() http.Header { return signedAs("OpenWOP-", hookBody, hookTime, secret, secret) }
	if w := send(hookBody, good()); w.Code != 500 {
		t.Errorf("what was not taken is answered %d", w.Code)
	}
	refuse = false
	for range 2 {
		if w := send(hookBody, good()); w.Code != 204 {
			t.Errorf("%d", w.Code)
		}
	}
	other := good() // the same delivery, in the name of another subscription
	other.Set("OpenWOP-Webhook-Id", "acme/0000000000000000")
	send(hookBody, other)
	if len(taken) != 1 {
		t.Errorf("taken: %v", taken)
	}
	if w := send(hookBody, http.Header{}); w.Code != 401 {
		t.Errorf("an unsigned request is answered %d", w.Code)
	}
	ask := `{"type":"openwop.webhook.verification","challenge":"c"}`
	h := signedAs("x-", ask, hookTime, "", secret)
	w := send(ask, h)
	if b, _ := io.ReadAll(w.Result().Body); w.Code != 200 || strings.TrimSpace(string(b)) != `{"challenge":"c"}` {
		t.Errorf("%d %s", w.Code, b)
	}
	if w := send(ask, signedAs("x-", ask, hookTime, "", NewWebhookSecret())); w.Code != 401 {
		t.Errorf("a stranger's question is answered %d", w.Code)
	}
}
