package egress

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestRegistration(t *testing.T) {
	strict := New(Options{})
	open := New(Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for u, want := range map[string][2]bool{ // taken by strict, by open
		"https://hooks.example.com/x?y=1":       {true, true},
		"https://HOOKS.example.com.:8443/":      {true, true},
		"https://8.8.8.8/":                      {true, true},
		"https://[64:ff9b::8.8.8.8]/":           {true, true},
		"https://[2606:4700:4700::1111]/":       {true, true},
		"http://hooks.example.com/":             {},
		"http://8.8.8.8/":                       {},
		"ftp://hooks.example.com/":              {},
		"https://hooks.example.com/#part":       {},
		"https://u:p@hooks.example.com/":        {},
		"https://localhost/":                    {},
		"https://LocalHost./":                   {},
		"https://a.localhost/":                  {},
		"https://metadata/":                     {},
		"https://metadata.google.internal/":     {},
		"https://printer.local/":                {},
		"https://127.1/":                        {},
		"https://2130706433/":                   {},
		"https://0x7f000001/":                   {},
		"https://a.0x7f/":                       {},
		"https:///x":                            {},
		"https://127.0.0.1/":                    {false, true},
		"http://127.0.0.1:8080/":                {false, true},
		"http://[::ffff:127.0.0.1]/":            {false, true},
		"https://[::ffff:7f00:1]/":              {false, true},
		"https://[64:ff9b::7f00:1]/":            {},
		"https://[::7f00:1]/":                   {},
		"https://[2002:7f00:1::]/":              {},
		"https://10.0.0.1/":                     {},
		"https://[::ffff:a9fe:a9fe]/":           {},
		"https://169.254.169.254/latest/":       {},
		"https://[fd00:ec2::254]/":              {},
		"https://[fec0::1]/":                    {},
		"https://100.64.0.1/":                   {},
		"https://198.18.0.1/":                   {},
		"https://hooks.example.com\u2044x.com/": {true, true}, // it resolves or not; it is no address
	} {
		x, err := url.Parse(u)
		if err != nil {
			t.Fatalf("%s: %v", u, err)
		}
		for i, g := range []*Guard{strict, open} {
			if err := g.CheckRegistration(x); (err == nil) != want[i] {
				t.Errorf("%s: %v, want it taken: %v", u, err, want[i])
			}
		}
	}
}
