package webhook

import "time"

// Policy says how hard deliveries are tried. A zero member means the default.
type Policy struct {
	MaxAttempts int           // of one delivery; default 10
	Backoff     time.Duration // before the second attempt; four times as long before each further one; default 2 s
	Timeout     time.Duration // of one attempt; default 15 s
}

const (
	backoffFactor = 4
	longestWait   = 6 * time.Hour    // between two attempts of a delivery
	longestRest   = 15 * time.Minute // of an endpoint that has failed, whatever waits for it
	longestAsked  = time.Hour        // of what a Retry-After may ask for

	// failing is from how many failures in a row on an endpoint rests, and is asked
	// once at a time until it takes something. One that fails now and then is not
	// slowed down by it.
	failing = 3

	// disableAfter is how many times MaxAttempts in a row must have failed before a
	// subscription is disabled.
	disableAfter = 3
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
	if p.Timeout <= 0 {
		p.Timeout = 15 * time.Second
	}
	return p
}

// longestRest is the most that an endpoint rests: no longer than one delivery waits
// for its last attempt.
func (p Policy) longestRest() time.Duration { return p.wait(p.MaxAttempts-1, longestRest, 1) }

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
