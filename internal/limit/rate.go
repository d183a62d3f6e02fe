package limit

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Rate is how often something may happen: Count times in Per at a steady pace, and
// up to Burst times at once after a rest. The zero Rate is no bound.
type Rate struct {
	Count int
	Per   time.Duration
	Burst int // at least 1
}

// None reports whether r bounds nothing.
func (r Rate) None() bool { return r.Count <= 0 }

// gap is the time between two at a steady pace.
func (r Rate) gap() time.Duration { return max(r.Per/time.Duration(r.Count), 1) }

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// most is the largest number in a Rate: one more a nanosecond has no gap.
const most = 1_000_000

// ParseRate reads what String writes: 100/s, 30/m, 5/h, with :200 behind it for
// bursts of up to 200, or none. Without it a burst is as long as the count.
func ParseRate(s string) (Rate, error) {
	if s == "none" {
		return Rate{}, nil
	}
	bad := errors.New("is not a rate such as 100/s, 30/m or 100/s:200, or none")
	pace, burst, bursts := strings.Cut(s, ":")
	count, unit, _ := strings.Cut(pace, "/")
	n, ok := whole(count)
	per := units[unit]
	if !ok || per == 0 {
		return Rate{}, bad
	}
	r := Rate{Count: n, Per: per, Burst: n}
	if bursts {
		if r.Burst, ok = whole(burst); !ok {
			return Rate{}, bad
		}
	}
	return r, nil
}

func whole(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= most && strconv.Itoa(n) == s
}

// String writes a rate as ParseRate reads it.
func (r Rate) String() string {
	if r.None() {
		return "none"
	}
	for unit, per := range units {
		if per != r.Per {
			continue
		}
		s := strconv.Itoa(r.Count) + "/" + unit
		if r.Burst != r.Count {
			s += ":" + strconv.Itoa(r.Burst)
		}
		return s
	}
	return strconv.Itoa(r.Count) + "/" + r.Per.String()
}
