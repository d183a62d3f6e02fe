package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// httpService names what was unavailable in a failure's details.
const httpService = "httpClient"

const (
	defaultHTTPTimeoutMs = 30_000
	maxHTTPTimeoutMs     = 600_000
	defaultResponseBytes = 1 << 20
	maxResponseBytes     = 4 << 20
)

// httpSeam is how the node's calls leave the host.
const httpSeam = "core.http.request"

func httpRequest(guard *egress.Guard) node.Type {
	guard = guard.Through(httpSeam)
	run := &requester{direct: guard.Client(), following: guard.RedirectClient()}
	return node.Type{
		ID:          "core.http.request",
		Description: "Calls a URL and hands on what it answers.",
		ConfigSchema: closed(`"url":{"type":"string","minLength":1,"maxLength":8192},` +
			`"method":{"enum":["GET","HEAD","POST","PUT","PATCH","DELETE","OPTIONS"]},` +
			`"headers":{"type":"object","maxProperties":100,"additionalProperties":{"type":"string"}},` +
			`"query":{"type":"object"},"body":{},"bodyText":{"type":"string"},` +
			`"timeoutMs":{"type":"integer","minimum":1,"maximum":600000},` +
			`"maxResponseBytes":{"type":"integer","minimum":1,"maximum":4194304},` +
			`"followRedirects":{"type":"boolean"},"retryOn5xx":{"type":"boolean"},` +
			`"idempotencyKey":{"type":"string","maxLength":512},"operation":{"type":"string","maxLength":512},` +
			credentialSchema + `,` +
			`"idempotencyHeader":{"type":"string","maxLength":128},"onUnknownOutcome":{"enum":["repeat","fail"]},` +
			`"expectStatus":` + expectSchema),
		Check:       checkHTTP(guard),
		Credentials: []string{"credential"},
		Seams: []node.Seam{{
			Name: httpSeam, Kind: node.SeamHTTP, BranchReFires: true,
			GuardedBy: "the guard of internal/egress: every request and every dial asks whether its run may have effects",
		}},
		Ports: puts("status", "headers", "body", "encoding", "url"),
		Run:   run.run,
	}
}

type requester struct{ direct, following *http.Client }

func (r *requester) run(ctx context.Context, in *node.Input) (node.Result, error) {
	var cfg httpConfig
	if err := bind(in, &cfg); err != nil {
		return node.Result{}, err
	}
	cfg.Body = member(in, "body")
	plan, err := cfg.plan()
	if err != nil {
		return node.Result{}, err
	}
	plan.in = in
	if plan.credential, err = readCredential(in, &cfg); err != nil {
		return node.Result{}, err
	}
	resp, err := r.ask(ctx, in, plan)
	if err != nil {
		return node.Result{}, err
	}
	if !plan.expects(resp.status) {
		return node.Result{}, unexpectedStatus(resp.status, plan.retry5xx)
	}
	return node.DoneRaw(resp.outputs), nil
}

// response is an answer as the node hands it on.
type response struct {
	status  int
	outputs map[string]json.RawMessage
}

// ask makes the call, or finds out what it has come to before.
func (r *requester) ask(ctx context.Context, in *node.Input, p *plan) (*response, error) {
	if safe[p.method] {
		return r.exchange(ctx, p, "", nil)
	}
	outcome, err := in.Services.Effect(ctx, p.effect(), r.perform(p))
	if err != nil {
		return nil, err
	}
	return responseOf(outcome)
}

// callFailed words a failure without the URL, the headers or the cause's own
// text, any of which may hold a secret.
func callFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the host ended the call; it knows why
	}
	var refused *node.Error
	if errors.As(err, &refused) { // at the seam
		return refused
	}
	if reason, ok := egress.DeniedReason(err); ok {
		e := node.Fail("egress_denied", "this host does not let the call out")
		e.Details = map[string]any{"reason": string(reason)}
		return e
	}
	e := node.Retry(node.CodeUnavailable, "the call failed: %s", egress.Describe(err))
	e.Details = map[string]any{"service": httpService}
	var large *egress.TooLarge
	if errors.As(err, &large) {
		e.Retryable = false
		e.Details["maxResponseBytes"] = large.Limit
	}
	return e
}

func unexpectedStatus(status int, retry5xx bool) error {
	e := node.Fail(node.CodeUnavailable, "the server answered with status %d", status)
	e.Details = map[string]any{"service": httpService, "status": status}
	e.Retryable = status == http.StatusTooManyRequests || status >= 500 && retry5xx
	return e
}

// plan is a call that has been checked.
type plan struct {
	cfg      *httpConfig
	in       *node.Input
	method   string
	url      string
	body     []byte
	timeout  time.Duration
	maxBytes int64
	retry5xx bool
	unknown  node.InDoubt
	expects  func(status int) bool

	credential *credentialConfig // nil for none
}

func (cfg *httpConfig) plan() (*plan, error) {
	p := &plan{cfg: cfg, retry5xx: cfg.RetryOn5xx == nil || *cfg.RetryOn5xx}
	ms, err := cfg.TimeoutMs.whole("timeoutMs", defaultHTTPTimeoutMs, 1, maxHTTPTimeoutMs)
	if err != nil {
		return nil, err
	}
	p.timeout = time.Duration(ms) * time.Millisecond
	if p.maxBytes, err = cfg.MaxResponseBytes.whole("maxResponseBytes", defaultResponseBytes, 1, maxResponseBytes); err != nil {
		return nil, err
	}
	if p.expects, err = expectation(cfg.ExpectStatus); err != nil {
		return nil, err
	}
	if p.method, err = choice("method", cfg.Method, "GET", methods...); err != nil {
		return nil, err
	}
	if p.url, err = cfg.target(); err != nil {
		return nil, err
	}
	if err = checkHeaders(cfg.Headers); err != nil {
		return nil, err
	}
	if err = cfg.checkKey(p.method); err != nil {
		return nil, err
	}
	if p.unknown, err = cfg.unknown(p.method); err != nil {
		return nil, err
	}
	p.body, err = cfg.payload(p.method)
	return p, err
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// checkHTTP refuses what is wrong whatever the run brings along. A closed
// address is refused at the call only: where a name leads may change.
func checkHTTP(guard *egress.Guard) func(node.CheckContext) error {
	return func(c node.CheckContext) error {
		var cfg httpConfig
		if err := declared(c, &cfg); err != nil {
			return err
		}
		cfg.Body = member(&node.Input{Config: c.Config}, "body")
		missing := cfg.URL == ""
		if missing {
			cfg.URL = "https://port.invalid/" // a port must bring the URL
		}
		plan, err := cfg.plan()
		if err == nil {
			_, err = readCredential(&node.Input{Config: c.Config}, &cfg)
		}
		if err != nil || missing {
			return err
		}
		req, err := http.NewRequest(plan.method, plan.url, nil)
		if err != nil {
			return badMember("url", "is not a valid URL")
		}
		if reason, ok := egress.DeniedReason(guard.CheckURL(req.URL)); ok && reason == egress.Policy {
			return badMember("url", "is not a URL this host calls")
		}
		return nil
	}
}
