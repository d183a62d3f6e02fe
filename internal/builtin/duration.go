package builtin

import (
	"strconv"
	"strings"
	"time"
)

// maxWaitYears bounds every wait for a moment in time.
const maxWaitYears = 10

// period is an ISO-8601 duration. Years and months are kept apart: how long they
// are depends on when they begin.
type period struct {
	months  int
	days    int
	seconds int64
	nanos   int64
}

// parsePeriod reads durations such as PT1H30M, P60D, P2W or P1Y6M. A fraction is
// allowed for seconds only. Longer than ten years is no duration.
func parsePeriod(s string) (period, bool) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" {
		return period{}, false
	}
	date, clock, timed := strings.Cut(rest, "T")
	if timed && clock == "" {
		return period{}, false
	}
	var n [7]int64
	var nanos int64
	if !units(date, "YMWD", n[:4], nil) || !units(clock, "HMS", n[4:], &nanos) {
		return period{}, false
	}
	p := period{
		months: int(n[0]*12 + n[1]), days: int(n[2]*7 + n[3]),
		seconds: n[4]*3600 + n[5]*60 + n[6], nanos: nanos,
	}
	const longest = maxWaitYears * 366
	ok = p.months <= maxWaitYears*12 && p.days <= longest && p.seconds <= longest*24*3600
	return p, ok
}

// units reads amounts, each followed by its letter, in the order of letters.
// Only the last of a part may have a fraction, and only if nanos is given.
func units(s, letters string, into []int64, nanos *int64) bool {
	next := 0
	for s != "" {
		end := strings.IndexAny(s, letters)
		if end < 1 {
			return false
		}
		unit := strings.IndexByte(letters, s[end])
		if unit < next {
			return false
		}
		next = unit + 1
		digits, fraction, split := strings.Cut(strings.Replace(s[:end], ",", ".", 1), ".")
		if split && (nanos == nil || unit != len(letters)-1 || !fractionOf(fraction, nanos)) {
			return false
		}
		if len(digits) > 9 || !isDigits(digits) {
			return false
		}
		into[unit], _ = strconv.ParseInt(digits, 10, 64)
		s = s[end+1:]
	}
	return true
}

func fractionOf(digits string, nanos *int64) bool {
	if len(digits) > 9 || !isDigits(digits) {
		return false
	}
	*nanos, _ = strconv.ParseInt(digits+strings.Repeat("0", 9-len(digits)), 10, 64)
	return true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// after is the moment the period after t ends. A month that has no such day ends
// on its last one.
func (p period) after(t time.Time) time.Time {
	t = t.UTC()
	moved := t.AddDate(0, p.months, 0)
	if moved.Day() != t.Day() {
		moved = moved.AddDate(0, 0, -moved.Day())
	}
	moved = moved.AddDate(0, 0, p.days)
	return moved.Add(time.Duration(p.seconds)*time.Second + time.Duration(p.nanos))
}
