package host

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestDeliveriesAreJudged(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	const secret, body = "secret", `{"a":1}`
	signed := func(family, stamp string) http.Header {
		m := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(m, "%s.%s", stamp, body)
		h := http.Header{}
		h.Set(family+"Signature", "sha256="+hex.EncodeToString(m.Sum(nil)))
		h.Set(family+"Timestamp", stamp)
		h.Set(family+"Signature-Algorithm", "v1")
		return h
	}
	at := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	with := func(h http.Header, name, v string) http.Header { h.Set(name, v); return h }
	for name, tc := range map[string]struct {
		h    http.Header
		good bool
	}{
		"of v2":           {signed("OpenWOP-", at(0)), true},
		"of v1":           {signed("X-openwop-", at(0)), true},
		"almost late":     {signed("OpenWOP-", at(-5*time.Minute)), true},
		"late":            {signed("OpenWOP-", at(-6*time.Minute)), false},
		"from the future": {signed("OpenWOP-", at(6*time.Minute)), false},
		"no headers":      {http.Header{}, false},
		"no algorithm":    {with(signed("OpenWOP-", at(0)), "OpenWOP-Signature-Algorithm", ""), false},
		"another":         {with(signed("OpenWOP-", at(0)), "OpenWOP-Signature-Algorithm", "v2"), false},
		"another time":    {with(signed("OpenWOP-", at(0)), "OpenWOP-Timestamp", at(time.Second)), false},
		"no time":         {with(signed("OpenWOP-", at(0)), "OpenWOP-Timestamp", "now"), false},
		"another mac":     {with(signed("OpenWOP-", at(0)), "OpenWOP-Signature", "sha256="+hex.EncodeToString(make([]byte, 32))), false},
		"no hex":          {with(signed("OpenWOP-", at(0)), "OpenWOP-Signature", "sha256=zz"), false},
		"a wrong new one": {with(signed("X-openwop-", at(0)), "OpenWOP-Signature", "sha256=00"), false},
	} {
		if why := judgeDelivery(secret, tc.h, []byte(body), now); (why == "") != tc.good {
			t.Errorf("%s: %q", name, why)
		}
	}
	if judgeDelivery("another", signed("OpenWOP-", at(0)), []byte(body), now) == "" || judgeDelivery(secret, signed("OpenWOP-", at(0)), []byte(body+" "), now) == "" {
		t.Error("another secret or another body was taken")
	}
}
