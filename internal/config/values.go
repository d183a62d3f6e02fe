package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An error here completes the sentence `listen: "abc" …`.

func address(into *string, v string) error {
	_, port, err := net.SplitHostPort(v) // any host may be in the machine's own tables
	if err != nil || strings.ContainsAny(v, "/@ ") {
		return errors.New("is not an address such as 127.0.0.1:7411")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return errors.New("has no port from 0 to 65535")
	}
	*into = v
	return nil
}

// database reads the address of a database that several replicas share.
func database(into *string, v string) error {
	if v == "" {
		*into = ""
		return nil
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || strings.Trim(u.Path, "/") == "" {
		return errors.New("is not an address such as postgres://user@host/name")
	}
	*into = v
	return nil
}

func baseURL(into *string, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("is not a URL such as https://h.example/api")
	}
	*into = v
	return nil
}

// HidePassword is the address of a database as people may see it.
func HidePassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(set, hidden)"
	}
	q := u.Query()
	if q.Has("password") {
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

func folder(into *string, v string) error {
	if strings.ContainsRune(v, 0) {
		return errors.New("is not a path")
	}
	*into = v
	return nil
}

func oneOf(into *string, v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return errors.New("is not one of " + strings.Join(allowed, ", "))
	}
	*into = v
	return nil
}

func onOff(into *bool, v string) error {
	if v != "on" && v != "off" {
		return errors.New("is not on or off")
	}
	*into = v == "on"
	return nil
}

func whole(into *int, v string, least, most int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return fmt.Errorf("is not a whole number from %d to %d", least, most)
	}
	*into = n
	return nil
}

const day = 24 * time.Hour

// duration reads what Go writes as a duration, and whole days such as 30d.
func duration(into *time.Duration, v string, least, most time.Duration) error {
	d, err := time.ParseDuration(v)
	if days, ok := strings.CutSuffix(v, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * day
	}
	if err != nil {
		return errors.New("is not a duration such as 10s, 5m, 12h or 30d")
	}
	if d < least || d > most {
		return fmt.Errorf("is not from %s to %s", formatDuration(least), formatDuration(most))
	}
	*into = d
	return nil
}

// Duration reads a duration as settings are written, whole days such as 30d too.
func Duration(v string) (d time.Duration, err error) {
	err = duration(&d, v, 0, 36500*day)
	return d, err
}

func formatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func prefixes(into *[]netip.Prefix, v string) error {
	var list []netip.Prefix
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			a, aerr := netip.ParseAddr(part)
			if aerr != nil || a.Zone() != "" {
				return fmt.Errorf("holds %q, which is not a range such as 10.1.0.0/16", part)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p != p.Masked() {
			return fmt.Errorf("holds %s, whose range is written %s", p, p.Masked())
		}
		list = append(list, p)
	}
	*into = list
	return nil
}

// texts reads names parted by commas. Not one of them may be empty: a stray comma
// is a slip.
func texts(into *[]string, v string) error {
	var list []string
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part == "" {
			if strings.TrimSpace(v) == "" {
				break
			}
			return fmt.Errorf("holds an empty name: %q", v)
		}
		list = append(list, part)
	}
	*into = list
	return nil
}

// parties reads who may do something: group:NAME, role:NAME or a subject.
func parties(into *[]string, v string) error {
	var list []string
	if err := texts(&list, v); err != nil {
		return err
	}
	for _, p := range list {
		if strings.HasSuffix(p, ":") || strings.HasPrefix(p, ":") {
			return fmt.Errorf("holds %q, which names nobody", p)
		}
	}
	*into = list
	return nil
}

func secret(into *string, v string) error {
	if len(v) < 32 || len(v) > 512 {
		return errors.New("must have 32 to 512 characters")
	}
	for i := range len(v) {
		if v[i] <= ' ' || v[i] > '~' {
			return errors.New("must hold printable ASCII characters without spaces only")
		}
	}
	*into = v
	return nil
}

// keyText takes what may be a master key, or several. The vault reads them.
func keyText(into *string, v string) error {
	if len(v) > 4096 || !strings.HasPrefix(v, "fermata-master-key-1:") {
		return errors.New("must be a key, whose text begins with fermata-master-key-1: and goes on in base64")
	}
	*into = v
	return nil
}
