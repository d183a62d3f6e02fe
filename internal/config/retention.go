package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// none is how a bound is written that there is not.
const none = "none"

// age reads how long something is kept.
func age(into *time.Duration, v string) error {
	if v == none {
		*into = 0
		return nil
	}
	if err := duration(into, v, day, 36500*day); err != nil {
		return fmt.Errorf("%w, or none", err)
	}
	return nil
}

func formatAge(d time.Duration) string {
	if d == 0 {
		return none
	}
	return formatDuration(d)
}

// runs reads how many runs are kept.
func runs(into *int, v string) error {
	if v == none {
		*into = 0
		return nil
	}
	if err := whole(into, v, 1, 1_000_000_000); err != nil {
		return fmt.Errorf("%w, or none", err)
	}
	return nil
}

func formatRuns(n int) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

func tenantRetention(into *[]TenantRetention, v string) error {
	var list []TenantRetention
	seen := map[string]bool{}
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		t, err := oneTenant(part)
		if err == nil && seen[t.Tenant] {
			err = errors.New("names the tenant twice")
		}
		if err != nil {
			return fmt.Errorf("holds %q, which %w", part, err)
		}
		seen[t.Tenant] = true
		list = append(list, t)
	}
	*into = list
	return nil
}

func oneTenant(s string) (t TenantRetention, err error) {
	name, bounds, ok := strings.Cut(s, "=")
	a, n, both := strings.Cut(bounds, "/")
	switch {
	case !ok || !both:
		return t, errors.New("is not written like acme=30d/10000")
	case !ids.ValidTenant(name):
		return t, errors.New("begins with no tenant")
	}
	t.Tenant = name
	if err := age(&t.MaxAge, a); err != nil {
		return t, fmt.Errorf("has an age that %w", err)
	}
	if err := runs(&t.MaxRuns, n); err != nil {
		return t, fmt.Errorf("has a number of runs that %w", err)
	}
	return t, nil
}

func joinTenants(list []TenantRetention) string {
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.Tenant + "=" + formatAge(t.MaxAge) + "/" + formatRuns(t.MaxRuns)
	}
	return strings.Join(texts, ",")
}
