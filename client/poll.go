package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// PollOptions says what to wait for.
type PollOptions struct {
	After *int64        // only events behind this sequence; nil for all of them
	Wait  time.Duration // how long the host may wait, 1 s to 60 s; 0 for its default of 30 s
}

// PollPage is what there is behind a cursor.
type PollPage struct {
	RunID        string  `json:"runId"`
	Events       []Event `json:"events"`
	LastSequence int64   `json:"lastSequence"` // highest in the log; -1 for an empty one
	Status       Status  `json:"status"`
	IsTerminal   bool    `json:"isTerminal"` // the run is over and nothing follows this page but what undoes it

	Raw json.RawMessage `json:"-"`
}

const defaultWait = 30 * time.Second

// Poll waits until there is an event behind the cursor or the time is over.
func (c *Client) Poll(ctx context.Context, runID string, o PollOptions) (*PollPage, error) {
	q, wait := url.Values{}, defaultWait
	if o.After != nil && *o.After >= 0 {
		q.Set("afterSequence", strconv.FormatInt(*o.After, 10))
	}
	if o.Wait > 0 {
		secs := min(max(int64((o.Wait+time.Second-1)/time.Second), 1), 60)
		q.Set("timeout", strconv.FormatInt(secs, 10))
		wait = time.Duration(secs) * time.Second
	}
	a, err := c.do(ctx, call{method: http.MethodGet, path: runPath(runID, "/events/poll"), query: q, again: true, extra: wait})
	if err != nil {
		return nil, err
	}
	var out PollPage
	out.Raw, err = a.into(&out)
	return &out, err
}
