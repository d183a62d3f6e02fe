package conformance_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/conformance"
)

// authority is a certificate for this machine, and who trusts it.
type authority struct {
	tls  *tls.Config
	pool *x509.CertPool
	pem  []byte
}

// trusted is a file with the authority of the suite's receivers.
func trusted(t *testing.T) string {
	t.Helper()
	return write(t, string(receivers().pem))
}

// receivers is what the suite's receivers speak TLS with in these tests.
var receivers = sync.OnceValue(func() authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return authority{&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, pool, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
})

// postman stands between the host and the receivers it delivers to, and damages
// what passes.
type postman struct {
	t      *testing.T
	damage func(p *postman, out *http.Request, body []byte) (answer int)
	http   *httptest.Server
	client *http.Client

	mu    sync.Mutex
	seen  map[string]int // passes, by body
	quit  chan struct{}
	tasks sync.WaitGroup
}

func newPostman(t *testing.T, damage func(*postman, *http.Request, []byte) int) *postman {
	p := &postman{t: t, damage: damage, seen: map[string]int{}, quit: make(chan struct{})}
	p.client = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: receivers().pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	p.http = httptest.NewServer(p)
	t.Cleanup(func() {
		close(p.quit)
		p.tasks.Wait()
		p.http.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

// ServeHTTP passes a delivery on, unless the damage answers it.
func (p *postman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.seen[string(body)]++
	p.mu.Unlock()
	out, err := http.NewRequest("POST", r.URL.Query().Get("to"), bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(500)
		return
	}
	out.Header = r.Header.Clone()
	if code := p.damage(p, out, body); code != 0 {
		w.WriteHeader(code)
		return
	}
	res, err := p.client.Do(out)
	if err != nil {
		w.WriteHeader(502)
		return
	}
	defer res.Body.Close()
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// behind is the host with the postman on its doorstep: what is registered with it is
// registered through him.
func (p *postman) behind(next http.Handler) http.Handler {
	return body(`^(/v1)?/webhooks$`, func(m map[string]any) {
		to, ok := m["url"].(string)
		if !ok || !strings.HasPrefix(to, "https://127.0.0.1:") {
			return
		}
		m["url"] = p.http.URL + "/?to=" + url.QueryEscape(to)
	})(next)
}

// TestBrokenDeliveriesAreCaught: each fault in what leaves the host is seen by the
// check that is there for it.
func TestBrokenDeliveriesAreCaught(t *testing.T) {
	t.Parallel()
	host := good(t)
	pass := func(*postman, *http.Request, []byte) int { return 0 }
	asked := func(b []byte) bool { return bytes.Contains(b, []byte("openwop.webhook.verification")) }
	header := func(name string, change func(string) string) func(*postman, *http.Request, []byte) int {
		return func(_ *postman, r *http.Request, b []byte) int {
			if v := r.Header.Get(name); v != "" && !asked(b) {
				r.Header.Set(name, change(v))
			}
			return 0
		}
	}
	sends := func(code func(status int) int) func(*postman, *http.Request, []byte) int {
		return func(p *postman, r *http.Request, b []byte) int {
			if asked(b) {
				return 0
			}
			res, err := p.client.Do(r)
			if err != nil {
				return 502
			}
			res.Body.Close()
			return code(res.StatusCode)
		}
	}
	same := func(next http.Handler) http.Handler { return next }
	for _, f := range []struct {
		name, check string
		damage      func(*postman, *http.Request, []byte) int
		host        func(http.Handler) http.Handler
	}{
		{"unsigned", "webhooks.signed", header("OpenWOP-Signature", func(string) string { return "" }), same},
		{"signed for another time", "webhooks.signed", header("OpenWOP-Timestamp", func(string) string { return fmt.Sprint(time.Now().Unix() - 60) }), same},
		{"named as another type", "webhooks.signed", header("OpenWOP-Event-Type", func(string) string { return "run.failed" }), same},
		{"loses one", "webhooks.complete", func(_ *postman, _ *http.Request, b []byte) int {
			if bytes.Contains(b, []byte(`"type":"node.completed"`)) {
				return 204
			}
			return 0
		}, same},
		{"gives up", "webhooks.retried", sends(func(int) int { return 204 }), same},
		{"takes a redirect", "webhooks.retried", sends(func(s int) int {
			if s >= 300 && s < 400 {
				return 204
			}
			return s
		}), same},
		{"another id in each attempt", "webhooks.standard", header("webhook-id", func(v string) string { return fmt.Sprint(v[:20], time.Now().UnixNano()) }), same},
		{"one signature in the overlap", "webhooks.rotation", header("webhook-signature", func(v string) string { return strings.Fields(v)[0] }), same},
		{"no standard signature", "webhooks.standard", header("webhook-signature", func(string) string { return "" }), same},
		{"goes on after the deletion", "webhooks.unregister-stops", func(p *postman, r *http.Request, b []byte) int {
			p.tasks.Go(func() {
				for range 20 {
					select {
					case <-p.quit:
						return
					case <-time.After(300 * time.Millisecond):
					}
					again, _ := http.NewRequest("POST", r.URL.String(), bytes.NewReader(b))
					again.Header = r.Header.Clone()
					if res, err := p.client.Do(again); err == nil {
						res.Body.Close()
					}
				}
			})
			return 0
		}, same},
		{"delivers one after the other", "webhooks.isolation", oneByOne(), same},
		{"never asks the endpoint", "webhooks.verified", pass, body(`^/webhooks$`, func(m map[string]any) { delete(m, "signatureAlgorithms") })},
		{"tells the secret again", "webhooks.secret-told-once", pass, answers(when("POST", `^/webhooks$`), on(201, set("secret", "conformance-secret-0123456789abcdef")))},
		{"forgets the tags", "webhooks.tags", pass, body(`^/webhooks$`, func(m map[string]any) { delete(m, "tags") })},
		{"dead letters with the body", "webhooks.dead-letter", pass, answers(when("GET", `/dead-letters$`), on(200, object(func(m map[string]any) {
			for _, d := range m["deliveries"].([]any) {
				d.(map[string]any)["payload"] = map[string]any{}
			}
		})))},
		{"dead letters of anybody", "webhooks.dead-letter-refusals", pass, instead(when("GET", `/dead-letters$`), 200, `{"deliveries":[]}`)},
		{"any scheme will do", "webhooks.opt-in", pass, body(`^/webhooks$`, func(m map[string]any) { delete(m, "signatureAlgorithms"); delete(m, "secret") })},
		{"callbacks to anywhere", "interrupt.callback-guarded", pass, body(create, func(m map[string]any) { delete(m, "callbackUrl") })},
	} {
		t.Run(f.check+"/"+f.name, func(t *testing.T) {
			t.Parallel()
			if f.check == "webhooks.unregister-stops" && testing.Short() {
				t.Skip("waits for deliveries that must not come")
			}
			p := newPostman(t, f.damage)
			r := look(t, serve(t, f.host(p.behind(host))), func(c *conformance.Config) {
				c.Filter, c.Quick, c.Timeout, c.Patience = quoted(f.check), false, 6*time.Second, 2*time.Second
			})
			if x, _ := r.Result(f.check); x.Status != conformance.Fail {
				t.Errorf("not caught: %s %s %v", x.Status, x.Reason, x.Evidence)
			}
		})
	}
}

// oneByOne makes every delivery wait for the one before it.
func oneByOne() func(*postman, *http.Request, []byte) int {
	var queue sync.Mutex
	return func(p *postman, r *http.Request, _ []byte) int {
		queue.Lock()
		defer queue.Unlock()
		res, err := p.client.Do(r)
		if err != nil {
			return 502
		}
		res.Body.Close()
		return res.StatusCode
	}
}
