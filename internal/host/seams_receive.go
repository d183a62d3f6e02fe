package host

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
)

// maxSkew is how far the time of a delivery may be from now.
const maxSkew = 5 * time.Minute

// ReceiveDelivery verifies a webhook delivery that this host is sent as a
// subscriber, with the subscription's secret; the reason is empty for one that is
// accepted. Deliveries of v1 hosts, with the X-openwop-* headers alone, are
// verified over the same bytes (spec v2 webhooks.md §Dual emission through the
// overlap).
func (h *Host) ReceiveDelivery(c identity.Caller, secret string, headers map[string]string, body string) (reason string, err error) {
	if err := h.seam(c); err != nil {
		return "", err
	}
	all := http.Header{}
	for name, v := range headers {
		all.Add(name, v)
	}
	return judgeDelivery(secret, all, []byte(body), h.clock.Now()), nil
}

func judgeDelivery(secret string, h http.Header, body []byte, now time.Time) string {
	family := "OpenWOP-"
	if h.Get("OpenWOP-Signature") == "" {
		family = "X-openwop-"
	}
	sig, stamp := h.Get(family+"Signature"), h.Get(family+"Timestamp")
	if alg := h.Get(family + "Signature-Algorithm"); alg != "v1" {
		return "the signature algorithm is not v1"
	}
	secs, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "the timestamp is no number of seconds"
	}
	if d := now.Sub(time.Unix(secs, 0)); d.Abs() > maxSkew {
		return "the timestamp is too far from now"
	}
	given, ok := strings.CutPrefix(sig, "sha256=")
	raw, err := hex.DecodeString(given)
	if !ok || err != nil {
		return "the signature is not sha256= and hex digits"
	}
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(stamp + "."))
	m.Write(body)
	if !hmac.Equal(m.Sum(nil), raw) {
		return "the signature does not fit the bytes"
	}
	return ""
}
