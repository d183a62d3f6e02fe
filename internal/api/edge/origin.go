package edge

import (
	"errors"
	"net/url"
	"strings"
)

// CheckOrigin says what is wrong with an entry of Config.Origins: anything that is
// not exactly what a browser sends can never match, and hides a slip.
func CheckOrigin(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "*" || s == "null":
		return errors.New("origins are named one by one: neither * nor null is one")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Contains(u.Host, "*"):
		return errors.New("is not an origin such as https://app.example.com")
	case s != u.Scheme+"://"+strings.ToLower(u.Host):
		return errors.New("is written " + u.Scheme + "://" + strings.ToLower(u.Host))
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return errors.New("is sent without its default port")
	}
	return nil
}

// CheckHost says what is wrong with an entry of Config.Hosts.
func CheckHost(s string) error {
	if s == "" || s != bare(s) || strings.ContainsAny(s, "*/:@ ") && !strings.Contains(s, "::") {
		return errors.New("is not a bare name such as fermata.example.com")
	}
	return nil
}
