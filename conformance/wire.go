package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	discoveryPath = "/.well-known/openwop"
	versionHeader = "OpenWOP-Version"
)

// maxAnswer bounds what is read of one answer.
const maxAnswer = 64 << 20

// answer is one answer of the host, with what was asked.
type answer struct {
	method, path string
	status       int
	header       http.Header
	body         []byte
}

func (a answer) line() string { return a.method + " " + a.path }

// brief is the status with the code of a refusal.
func (a answer) brief() string {
	if c := a.code(); a.status >= 400 && c != "" {
		return fmt.Sprintf("%d %s", a.status, c)
	}
	return fmt.Sprint(a.status)
}

// obj reads the body as an object; nil if it is none.
func (a answer) obj() map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(a.body, &m)
	return m
}

// str reads a string member of the body.
func (a answer) str(name string) string { return text(a.obj()[name]) }

func (a answer) code() string {
	if a.status < 400 {
		return ""
	}
	return a.str("error")
}

// detail reads a member of a refusal's details.
func (a answer) detail(name string) json.RawMessage {
	var d map[string]json.RawMessage
	_ = json.Unmarshal(a.obj()["details"], &d)
	return d[name]
}

func text(v json.RawMessage) string {
	var s string
	_ = json.Unmarshal(v, &s)
	return s
}

// do asks the host. Headers come in pairs, and one with an empty value is left
// out. A host that does not answer fails the check.
func (p *probe) do(method, path string, body any, header ...string) answer {
	a, err := p.send(method, path, body, header...)
	if err != nil {
		p.fail("%s %s: no answer: %v", method, path, err)
	}
	return a
}

func (p *probe) get(path string, header ...string) answer { return p.do("GET", path, nil, header...) }

func (p *probe) post(path string, body any, header ...string) answer {
	return p.do("POST", path, body, header...)
}

// send asks, and keeps the answer as evidence and for the sweeps.
func (p *probe) send(method, path string, body any, header ...string) (answer, error) {
	a, err := p.request(method, path, body, header...)
	if err != nil {
		p.note(fmt.Sprintf("%s %s: %v", method, path, err))
		return a, err
	}
	p.keep(a)
	return a, nil
}

func (p *probe) keep(a answer) {
	p.note(a.line() + ": " + a.brief())
	if a.status < 400 {
		a.body = nil // the sweeps read the bodies of refusals only
	}
	p.s.mu.Lock()
	p.s.seen = append(p.s.seen, a)
	p.s.mu.Unlock()
}

func (p *probe) request(method, path string, body any, header ...string) (answer, error) {
	path = p.placed(path)
	res, err := p.open(p.ctx, method, path, body, header...)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("the answer %d broke off: %w", res.StatusCode, err)
	}
	return answer{method, path, res.StatusCode, res.Header, b}, nil
}

// speaks is the major of the probe's requests.
func (p *probe) speaks() int {
	if p.major != 0 {
		return p.major
	}
	return p.s.major
}

// placed is where an operation of the protocol is: version 1 has a path space of its
// own, version 2 has none.
func (p *probe) placed(path string) string {
	if p.speaks() == 1 {
		for _, of := range []string{"/runs", "/workflows", "/webhooks", "/interrupts"} {
			if strings.HasPrefix(path, of) {
				return "/v1" + path
			}
		}
	}
	return path
}

// as is a hand on the same host that speaks another major.
func (p *probe) as(major int) *probe { return &probe{ctx: p.ctx, s: p.s, major: major} }

// open sends a request and leaves the answer's body to the caller.
func (p *probe) open(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		r = bytes.NewReader(b)
	case string:
		r = strings.NewReader(b)
	case io.Reader: // of a size that the request does not say
		r = b
	default:
		enc, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(enc)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.s.cfg.BaseURL+p.placed(path), r)
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Accept", "application/json")
	if p.speaks() == 2 { // clients of version 1 send none
		h.Set(versionHeader, "2")
	}
	h.Set("User-Agent", "fermata-conformance/"+Version)
	if p.s.cfg.APIKey != "" {
		h.Set("Authorization", "Bearer "+p.s.cfg.APIKey)
	}
	if r != nil {
		h.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			h.Del(header[i])
		} else {
			h.Set(header[i], header[i+1])
		}
	}
	return p.s.cfg.HTTPClient.Do(req)
}
