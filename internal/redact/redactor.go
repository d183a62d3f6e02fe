package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// MinLength is the length in bytes of the shortest secret that is looked for.
// Anything shorter would be found where it is none, so a vault does not take it.
const MinLength = 8

// Bounds of what is remembered. The values heard of longest ago go first.
const (
	maxValues  = 2_000  // of one tenant
	maxTenants = 10_000 // with values
)

// Redactor knows secret values. Its methods are safe for concurrent use, and those
// of a nil Redactor know the forms alone.
type Redactor struct {
	mu      sync.Mutex
	tenants map[string]*known
	order   []string // tenants, as they came
	all     atomic.Pointer[set]
}

// known is what is secret for one tenant.
type known struct {
	labels map[string]string // by value
	order  []string
	set    atomic.Pointer[set] // of the host's values and the tenant's; nil: to be made
}

// set is ready for use and never changes.
type set struct {
	r     *strings.Replacer
	words []string // everything looked for, the longest first
}

// New makes a Redactor that knows nothing yet.
func New() *Redactor { return &Redactor{tenants: map[string]*known{}} }

// Know makes a value secret for a tenant, under a label that may be shown in its
// place; with an empty tenant for all of them. A value that is too short is not
// looked for.
func (r *Redactor) Know(tenant, label, value string) {
	if r == nil || len(value) < MinLength {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.tenants[tenant]
	if k == nil {
		if len(r.order) >= maxTenants {
			delete(r.tenants, r.order[0])
			r.order = r.order[1:]
		}
		k = &known{labels: map[string]string{}}
		r.tenants[tenant] = k
		if tenant != "" { // the host's own are never forgotten for those of tenants
			r.order = append(r.order, tenant)
		}
	}
	if _, ok := k.labels[value]; ok {
		return
	}
	if len(k.order) >= maxValues {
		delete(k.labels, k.order[0])
		k.order = k.order[1:]
	}
	k.labels[value] = label
	k.order = append(k.order, value)
	r.all.Store(nil)
	k.set.Store(nil)
	if tenant == "" {
		for _, x := range r.tenants {
			x.set.Store(nil)
		}
	}
}

// of is what to look for on behalf of a tenant; nil for nothing.
func (r *Redactor) of(tenant string) *set {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k, host := r.tenants[tenant], r.tenants[""]
	if k == nil {
		k = host
	}
	if k == nil {
		return nil
	}
	if s := k.set.Load(); s != nil {
		return s
	}
	s := newSet(k, host)
	k.set.Store(s)
	return s
}

// every is what to look for where there is no tenant: all of it.
func (r *Redactor) every() *set {
	if r == nil {
		return nil
	}
	if s := r.all.Load(); s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tenants) == 0 {
		return nil
	}
	list := make([]*known, 0, len(r.tenants))
	for _, k := range r.tenants {
		list = append(list, k)
	}
	s := newSet(list...)
	r.all.Store(s)
	return s
}

func newSet(from ...*known) *set {
	shown := map[string]string{}
	for _, k := range from {
		if k == nil {
			continue
		}
		for _, value := range k.order {
			label := "[REDACTED:" + k.labels[value] + "]"
			for _, form := range forms(value) {
				shown[form] = label
			}
		}
	}
	s := &set{words: make([]string, 0, len(shown))}
	for w := range shown {
		s.words = append(s.words, w)
	}
	// Of two that begin alike the longer one counts.
	slices.SortFunc(s.words, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(s.words))
	for _, w := range s.words {
		pairs = append(pairs, w, shown[w])
	}
	s.r = strings.NewReplacer(pairs...)
	return s
}

// forms are the ways in which a value is written in what passes through a host.
func forms(v string) []string {
	quoted := strconv.Quote(v)
	out := []string{
		v, url.QueryEscape(v), url.PathEscape(v), quoted[1 : len(quoted)-1], hex.EncodeToString([]byte(v)),
		base64.StdEncoding.EncodeToString([]byte(v)), base64.RawStdEncoding.EncodeToString([]byte(v)),
		base64.URLEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)),
	}
	return append(out, strings.ToUpper(hex.EncodeToString([]byte(v))))
}

// Text takes a tenant's secrets, the host's, and whatever has the form of an own key
// or token out of a text that becomes data.
func (r *Redactor) Text(tenant, text string) string {
	return Own(r.of(tenant).text(text))
}

// Known takes known values out of a text and leaves forms alone: it is for what may
// show a key that was just made.
func (r *Redactor) Known(tenant, text string) string { return r.of(tenant).text(text) }

// Line takes every secret of every tenant, and every form of one, out of a text that
// people read about the host.
func (r *Redactor) Line(text string) string { return Scrub(r.every().text(text)) }

func (s *set) text(text string) string {
	if s == nil || len(text) < MinLength {
		return text
	}
	return s.r.Replace(text)
}

// Hold says how much of the end of a text may be the beginning of a secret, so that
// a text that comes in pieces can be looked at as a whole.
func (r *Redactor) Hold(tenant, text string) int {
	s := r.of(tenant)
	if s == nil || text == "" {
		return 0
	}
	longest := 0
	last := text[len(text)-1]
	for _, w := range s.words {
		for n := min(len(w)-1, len(text)); n > longest; n-- {
			if w[n-1] == last && strings.HasSuffix(text, w[:n]) {
				longest = n
			}
		}
	}
	return longest
}
