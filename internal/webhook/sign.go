package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// DeliveryID names the delivery of one event to one target: the same in every
// attempt and after every restart, another for every other delivery. It has 26
// characters of a-z and 0-9, and nothing of it follows from a secret.
func DeliveryID(tenant, target string, run ids.Run, seq int64, at time.Time) string {
	return ids.Derive(at, "fermata delivery 1", tenant, target, run.String(), strconv.FormatInt(seq, 10))
}

// Standard reports whether a subscription has asked for Standard Webhooks.
func Standard(s *store.Subscription) bool { return slices.Contains(s.Algorithms, SchemeStandard) }

// sign puts the headers of a delivery on a request (spec v2 webhooks.md §Headers).
// While two secrets count, the scheme v1, which has room for one signature, stays
// with the old one.
func sign(h http.Header, s *store.Subscription, name, id, typ string, body []byte, now time.Time) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	secrets := []string{s.Secret}
	if s.Previous != "" && now.Before(s.PreviousUntil) {
		secrets = append(secrets, s.Previous)
	}
	mac := hmac.New(sha256.New, []byte(secrets[len(secrets)-1]))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	h.Set("OpenWOP-Webhook-Id", name)
	h.Set("OpenWOP-Event-Type", typ)
	h.Set("OpenWOP-Timestamp", stamp)
	h.Set("OpenWOP-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	h.Set("OpenWOP-Signature-Algorithm", SchemeV1)
	if Standard(s) {
		signStandard(h, id, stamp, body, secrets...)
	}
}

// signStandard adds the headers of Standard Webhooks 1.0.0: one signature for each
// secret, the newest first.
func signStandard(h http.Header, id, stamp string, body []byte, secrets ...string) {
	signatures := ""
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, StandardKey(secret))
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		if signatures != "" {
			signatures += " "
		}
		signatures += "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", signatures)
}
