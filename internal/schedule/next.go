package schedule

import (
	"slices"
	"time"
)

// Next is the first tick after a moment, in UTC; zero if none comes any more.
//
// Intervals are counted from 1970-01-01T00:00:00Z. An expression that leaves the hour
// open has a tick whenever the zone's clock shows such a time. One that names hours is
// meant as times on the wall: a time that the clock leaps over has its tick at the end
// of the leap, and of a time that the clock shows twice only the first counts.
func (s *Spec) Next(after time.Time) time.Time {
	if s.Every > 0 {
		ms, every := after.UnixMilli(), s.Every.Milliseconds()
		return time.UnixMilli((floor(ms, every) + 1) * every).UTC()
	}
	if !s.wall {
		return utc(s.cron.Next(after.In(s.loc)))
	}
	a := after.In(s.loc)
	wall := time.Date(a.Year(), a.Month(), a.Day(), a.Hour(), a.Minute(), a.Second(), a.Nanosecond(), time.UTC)
	for {
		if wall = s.cron.Next(wall); wall.IsZero() {
			return wall
		}
		if t := moment(wall, s.loc); t.After(after) {
			return t
		}
	}
}

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// moment is when a clock in loc first shows a time, given as if it were UTC, or when
// it has leapt over it.
func moment(wall time.Time, loc *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, loc)
	from, until := t.ZoneBounds()
	shown := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
	switch {
	case shown.After(wall): // reckoned with the offset before the leap
		return from.UTC()
	case shown.Before(wall):
		return until.UTC()
	case from.IsZero():
		return t.UTC()
	}
	_, offset := from.Add(-time.Second).Zone()
	if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(from) {
		return first
	}
	return t.UTC()
}

// spans are how far back Due looks, one after the other: ticks may lie close or far
// apart, and nobody wants to count a year's minutes.
var spans = []time.Duration{2 * time.Hour, 3 * 24 * time.Hour, 90 * 24 * time.Hour, 6 * 366 * 24 * time.Hour}

// Due lists the newest ticks from first to now, both included, oldest first: up to
// most. older says that there are others before them.
func (s *Spec) Due(first, now time.Time, most int) (ticks []time.Time, older bool) {
	for _, span := range spans {
		from := now.Add(-span)
		whole := !from.After(first)
		if whole {
			from = first
		}
		ticks = ticks[:0]
		for t := s.Next(from.Add(-time.Millisecond)); !t.IsZero() && !t.After(now); t = s.Next(t) {
			ticks = append(ticks, t)
		}
		if whole || len(ticks) > most {
			break
		}
	}
	if len(ticks) > most {
		return slices.Clone(ticks[len(ticks)-most:]), true
	}
	return ticks, false
}
