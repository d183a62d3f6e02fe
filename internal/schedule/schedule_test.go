package schedule

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func spec(t *testing.T, config string) *Spec {
	t.Helper()
	s, err := Parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func TestNext(t *testing.T) {
	berlin := func(cron string) string { return fmt.Sprintf(`{"cron":%q,"timezone":"Europe/Berlin"}`, cron) }
	for name, c := range map[string]struct {
		config, after string
		want          []string
	}{
		"UTC if nothing is said": {`{"cron":"30 3 * * *"}`, "2026-03-01T03:30:00Z", []string{"2026-03-02T03:30:00Z"}},
		"a word":                 {`{"cron":"@daily"}`, "2026-03-01T03:30:00Z", []string{"2026-03-02T00:00:00Z"}},
		"every hour":             {`{"cron":"@hourly"}`, "2026-03-01T03:30:00Z", []string{"2026-03-01T04:00:00Z"}},
		"names":                  {`{"cron":"0 9 * * MON-FRI"}`, "2026-02-27T09:00:00Z", []string{"2026-03-02T09:00:00Z", "2026-03-03T09:00:00Z"}},
		"leap days":              {`{"cron":"0 0 29 2 *"}`, "2024-02-29T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		"the 31st":               {`{"cron":"0 0 31 * *"}`, "2026-01-31T00:00:00Z", []string{"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
		"in a zone":              {berlin("0 3 * * *"), "2026-01-01T00:00:00Z", []string{"2026-01-01T02:00:00Z"}},
		"summer comes, a time that is leapt over": {
			berlin("30 2 * * *"), "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		},
		"summer comes, two times that are leapt over": {
			berlin("0,30 2 * * *"), "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"},
		},
		"summer comes, a time that is leapt over and the next": {
			berlin("0 2,3 * * *"), "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"},
		},
		"winter comes, a time that comes twice": {
			berlin("30 2 * * *"), "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"winter comes, between the two": {berlin("30 2 * * *"), "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		"winter comes, no hour named": {
			berlin("30 * * * *"), "2026-10-24T23:30:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"},
		},
		"summer comes, no hour named": {berlin("30 * * * *"), "2026-03-29T00:00:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		"half an hour of summer": {
			`{"cron":"15 2 * * *","timezone":"Australia/Lord_Howe"}`, "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"},
		},
		"midnight is leapt over": {
			`{"cron":"0 0 * * *","timezone":"America/Santiago"}`, "2026-09-05T12:00:00Z",
			[]string{"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"},
		},
		"intervals":          {`{"every":"15m"}`, "2026-03-01T03:07:12Z", []string{"2026-03-01T03:15:00Z", "2026-03-01T03:30:00Z"}},
		"before the epoch":   {`{"every":"1h"}`, "1969-12-31T22:30:00Z", []string{"1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z"}},
		"odd intervals":      {`{"every":"7m"}`, "1970-01-01T00:00:00Z", []string{"1970-01-01T00:07:00Z", "1970-01-01T00:14:00Z"}},
		"within the same ms": {`{"cron":"* * * * *"}`, "2026-03-01T03:07:59.999Z", []string{"2026-03-01T03:08:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := spec(t, c.config), at(c.after)
			for _, want := range c.want {
				if now = s.Next(now); !now.Equal(at(want)) {
					t.Fatalf("got %s, want %s", now.Format(time.RFC3339), want)
				}
			}
		})
	}
}

// Ticks do not depend on where one begins to look, across both changes of the clock.
func TestTicksAreFixed(t *testing.T) {
	for _, config := range []string{
		`{"cron":"*/20 1-3 * * *","timezone":"Europe/Berlin"}`, `{"cron":"*/20 * * * *","timezone":"America/New_York"}`,
		`{"cron":"5,35 0,2 * * *","timezone":"Australia/Lord_Howe"}`, `{"every":"25m"}`,
	} {
		s := spec(t, config)
		for _, day := range []string{"2026-03-08T00:00:00Z", "2026-03-29T00:00:00Z", "2026-04-04T00:00:00Z", "2026-10-03T12:00:00Z", "2026-10-25T00:00:00Z", "2026-11-01T00:00:00Z"} {
			ticks := map[time.Time]bool{}
			for x := s.Next(at(day)); x.Before(at(day).Add(48 * time.Hour)); x = s.Next(x) {
				ticks[x] = true
			}
			if len(ticks) == 0 {
				t.Fatalf("%s: no ticks from %s", config, day)
			}
			for x := at(day); x.Before(at(day).Add(24 * time.Hour)); x = x.Add(5 * time.Minute) {
				n := s.Next(x)
				if !n.After(x) || !ticks[n] {
					t.Fatalf("%s: after %s comes %s, which is no tick otherwise", config, x, n)
				}
			}
		}
	}
}

func TestDue(t *testing.T) {
	for name, c := range map[string]struct {
		config, first, now string
		most, want         int
		oldest             string
		older              bool
	}{
		"one":                    {`{"every":"1m"}`, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", 5, 1, "2026-03-01T00:00:00Z", false},
		"not yet":                {`{"every":"1m"}`, "2026-03-01T00:00:00Z", "2026-02-28T23:59:59Z", 5, 0, "", false},
		"some":                   {`{"every":"1m"}`, "2026-03-01T00:00:00Z", "2026-03-01T00:03:30Z", 5, 4, "2026-03-01T00:00:00Z", false},
		"exactly as many":        {`{"every":"1m"}`, "2026-03-01T00:00:00Z", "2026-03-01T00:04:30Z", 5, 5, "2026-03-01T00:00:00Z", false},
		"one more":               {`{"every":"1m"}`, "2026-03-01T00:00:00Z", "2026-03-01T00:05:30Z", 5, 5, "2026-03-01T00:01:00Z", true},
		"a year of minutes":      {`{"every":"1m"}`, "2025-03-01T00:00:00Z", "2026-03-01T00:00:30Z", 1, 1, "2026-03-01T00:00:00Z", true},
		"a year of days":         {`{"cron":"0 3 * * *"}`, "2025-03-01T03:00:00Z", "2026-03-01T00:00:00Z", 100, 100, "2025-11-21T03:00:00Z", true},
		"a year, and one of it":  {`{"cron":"0 0 1 1 *"}`, "2025-01-01T00:00:00Z", "2026-03-01T00:00:00Z", 1, 1, "2026-01-01T00:00:00Z", true},
		"four years between two": {`{"cron":"0 0 29 2 *"}`, "2024-02-29T00:00:00Z", "2028-03-01T00:00:00Z", 9, 2, "2024-02-29T00:00:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			ticks, older := spec(t, c.config).Due(at(c.first), at(c.now), c.most)
			if len(ticks) != c.want || older != c.older {
				t.Fatalf("%d ticks, older %v: %v", len(ticks), older, ticks)
			}
			if c.want > 0 && !ticks[0].Equal(at(c.oldest)) {
				t.Fatalf("the oldest is %s", ticks[0])
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for config, field := range map[string]string{
		``: "", `[]`: "", `{}`: "cron", `{"cron":""}`: "cron", `{"cron":"* * * *"}`: "cron", `{"cron":"* * * * * *"}`: "cron",
		`{"cron":"61 * * * *"}`: "cron", `{"cron":"0 0 30 2 *"}`: "cron", `{"cron":"*/0 * * * *"}`: "cron", `{"cron":5}`: "cron",
		`{"cron":"TZ=UTC"}`: "cron", `{"cron":"CRON_TZ=Europe/Berlin 0 3 * * *"}`: "cron", `{"cron":"@every 5m"}`: "cron", `{"cron":"@reboot"}`: "cron",
		`{"cron":"@daily","timezone":"Mars/Base"}`: "timezone", `{"cron":"@daily","timezone":""}`: "timezone",
		`{"cron":"@daily","timezone":"Local"}`: "timezone", `{"cron":"@daily","timezone":"../etc/passwd"}`: "timezone",
		`{"every":"15m","timezone":"UTC"}`: "timezone", `{"cron":"@daily","every":"15m"}`: "every",
		`{"every":"30s"}`: "every", `{"every":"90s"}`: "every", `{"every":"0"}`: "every", `{"every":"-5m"}`: "every", `{"every":"9000h"}`: "every", `{"every":"soon"}`: "every",
		`{"cron":"@daily","inputs":[]}`: "inputs", `{"cron":"@daily","inputs":null}`: "inputs",
		`{"cron":"@daily","catchUp":"some"}`: "catchUp", `{"cron":"@daily","catchUp":""}`: "catchUp", `{"cron":"@daily","overlap":"queue"}`: "overlap",
		`{"cron":"@daily","Cron":"x"}`: "Cron", `{"cron":"@daily","jitter":"5m"}`: "jitter",
	} {
		_, err := Parse([]byte(config))
		var f *Fault
		if !errors.As(err, &f) || f.Field != field || f.Message == "" {
			t.Errorf("%s: %v, want a fault of %q", config, err, field)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0 3 * * *", "@daily", "TZ=", "*/5 * ? * 1-5", "1,2 3-4/2 * JAN *", "@every 1m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &Spec{Timezone: "Europe/Berlin"}
		if s.times(text) != nil {
			return
		}
		from := at("2026-03-29T00:00:00Z")
		for range 5 {
			next := s.Next(from)
			if next.IsZero() {
				return
			}
			if !next.After(from) || next.Second() != 0 {
				t.Fatalf("%q: after %s comes %s", text, from, next)
			}
			from = next
		}
	})
}
