package webhook

import "time"

// Policy says how hard deliveries are tried. A zero member means the default.
type Policy struct {
	MaxAttempts int           // of one delivery; default 10
	Backoff     time.Duration // before the second attempt; four times as long before each further one; default 2 s
	Timeout     time.Duration // of one attempt; default 15 s

	// DisableAfter is for how long an endpoint must have taken nothing before its
	// subscription is disabled; default 6 h.
	DisableAfter time.Duration
}

const (
	backoffFactor = 4
	longestWait   = 6 * time.Hour    // between two attempts of a delivery
	longestRest   = 15 * time.Minute // of an endpoint that is failing, whatever waits for it
	restShare     = 32               // of the time for which it has been failing
	longestAsked  = time.Hour        // of what a Retry-After may ask for

	// failing is from how many failures in a row on an endpoint rests between
	// attempts, and is asked by few at a time until it takes something. One that
	// fails now and then is not slowed down by it.
	failing = 3

	// disableTimes is how many times MaxAttempts in a row must have failed, too,
	// before a subscription is disabled.
	disableTimes = 3
	// holdFor is how long a disabled subscription's deliveries wait for it to be
	// enabled. After that they are dead letters.
	holdFor = 72 * time.Hour
)

func (p Policy) withDefaults() Policy {
	if p.MaxAttempts <= 0 {
		p.MaxAttempts = 10
	}
	if p.Backoff <= 0 {
		p.Backoff = 2 * time.Second
	}
	if p.DisableAfter <= 0 {
		p.DisableAfter = 6 * time.Hour
	}
	if p.Timeout <= 0 {
		p.Timeout = 15 * time.Second
	}
	return p
}

// rest is how long an endpoint rests after so many failures in a row, the first of
// which was so long ago: at first hardly, so that each delivery has its attempts when
// they are due, and longer the longer the endpoint has been gone.
func (p Policy) rest(failures int, since time.Duration, random float64) time.Duration {
	if failures < failing {
		return 0
	}
	return p.wait(failures-failing+1, min(max(p.Backoff, since/restShare), longestRest), random)
}

// wait is how long to wait after the nth failure in a row, at most most: a random
// time from half of the exponential one to all of it, so that what failed together
// does not come back together.
func (p Policy) wait(n int, most time.Duration, random float64) time.Duration {
	d := p.Backoff
	for range n - 1 {
		if d *= backoffFactor; d >= most {
			break
		}
	}
	d = min(d, most)
	return d/2 + time.Duration(random*float64(d-d/2))
}
