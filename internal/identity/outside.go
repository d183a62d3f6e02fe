package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Bounds of one exchange with an issuer.
const (
	outsideTime  = 10 * time.Second
	outsideBytes = 1 << 20
)

// get fetches a JSON document. Redirects are not followed: where an issuer's
// documents are is for the operator to say.
func (o Outside) get(ctx context.Context, address string, into any) error {
	return o.exchange(ctx, http.MethodGet, address, nil, nil, into)
}

func (o Outside) exchange(ctx context.Context, method, address string, form url.Values, prepare func(*http.Request), into any) error {
	ctx, stop := context.WithTimeout(ctx, outsideTime)
	defer stop()
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("not a URL")
	}
	if err := o.Check(u); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if prepare != nil {
		prepare(r)
	}
	resp, err := o.Client.Do(r)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", u.Host, errors.Unwrap(err)) // without the URL
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", u.Host, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, outsideBytes+1))
	if err != nil || len(body) > outsideBytes {
		return fmt.Errorf("%s answered with something that cannot be read", u.Host)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s answered with something that is not the JSON it should be", u.Host)
	}
	return nil
}
