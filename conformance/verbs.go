package conformance

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// The exit statuses of verify. Each way in which a signature is worth less has
// its own, because they call for different things.
const (
	ExitSound        = 0 // attributed to the host, and every claim is certified
	ExitRefused      = 1 // not evidence: see the rejections
	ExitNoDiscovery  = 3 // the host's discovery document was not read
	ExitNotPublished = 4 // it was read, and does not list the key
	ExitForged       = 5 // the attestation does not verify
	ExitUncertified  = 6 // sound evidence, which does not certify what is claimed
)

var verbs = map[string]func(console, []string) int{
	"verify": console.verify, "keygen": console.keygen, "authority": console.newAuthority,
}

func (t console) verify(args []string) int {
	f := t.flags("verify")
	base := f.String("base-url", "", "origin of the host the bundle is about; its discovery document is read there")
	file := f.String("discovery", "", "file with that document")
	key := f.String("key", "", "PEM file of a public key trusted to be the host's")
	verifier := f.String("verifier-key", "", "PEM file of the independent party's public key")
	asJSON := f.Bool("json", false, "write the verdict as JSON")
	paths, code, ok := t.parse(f, args, 1)
	if !ok {
		return code
	}
	if len(paths) == 0 {
		return t.usage("verify wants one bundle: conformance verify FILE --base-url URL | --discovery FILE [--key FILE]")
	}
	if *base != "" && *file != "" {
		return t.usage("--base-url and --discovery exclude each other")
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		return t.usage("%v", err)
	}
	trust, err := t.trust(*base, *file, *key, *verifier)
	if err != nil {
		return t.usage("%v", err)
	}
	v := Verify(text, trust)
	if err := v.write(t.stdout, *asJSON); err != nil {
		return t.usage("%v", err)
	}
	return v.ExitStatus()
}

func (t console) trust(base, file, key, verifier string) (trust Trust, err error) {
	switch {
	case base != "":
		trust.Discovery, err = t.readDiscovery(base)
	case file != "":
		trust.Discovery, err = os.ReadFile(file)
	}
	if err != nil {
		return trust, err
	}
	for path, into := range map[string]*ed25519.PublicKey{key: &trust.Key, verifier: &trust.VerifierKey} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return trust, err
		}
		if *into, err = ReadPublicKey(text); err != nil {
			return trust, fmt.Errorf("%s: %w", path, err)
		}
	}
	return trust, nil
}

func (t console) readDiscovery(base string) ([]byte, error) {
	req, err := http.NewRequestWithContext(t.ctx, http.MethodGet, strings.TrimRight(base, "/")+discoveryPath, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(versionHeader, "2")
	c := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && (res.StatusCode != http.StatusOK || !json.Valid(b)) {
		err = fmt.Errorf("%s has no discovery document: it answered %d", base, res.StatusCode)
	}
	return b, err
}

// ExitStatus is what a program that verified a bundle should end with.
func (v *Verification) ExitStatus() int {
	switch {
	case v.Attribution == Forged:
		return ExitForged
	case len(v.Rejections) > 0:
		return ExitRefused
	case v.Attribution == NoDiscovery:
		return ExitNoDiscovery
	case v.Attribution == NotPublished:
		return ExitNotPublished
	}
	for _, p := range v.Profiles {
		if !p.Certified {
			return ExitUncertified
		}
	}
	return ExitSound
}

func (v *Verification) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	says := map[Attribution]string{
		Attributed:   "attributed: the host published the key, and the attestation verifies under it",
		NoDiscovery:  "integrity at most: the host's discovery document was not read (--base-url or --discovery)",
		NotPublished: "integrity at most: the host's discovery document does not list the key",
		Forged:       "forged: the attestation does not verify",
	}
	fmt.Fprintf(w, "signature  %s\n", says[v.Attribution])
	if v.Intact && v.Attribution != Attributed {
		fmt.Fprintln(w, "           it verifies under the key that was given")
	}
	if v.Moved {
		fmt.Fprintln(w, "note       the host's discovery document is another one by now")
	}
	for _, r := range v.Rejections {
		fmt.Fprintf(w, "refused    %s: %s\n", r.Kind, strings.TrimSpace(r.Profile+" "+r.Detail))
	}
	for _, p := range v.Profiles {
		verdict := "certified"
		if !p.Certified {
			verdict = "not certified: " + p.Why
		}
		fmt.Fprintf(w, "profile    %s (%s): %s\n", p.ID, p.Tier, verdict)
	}
	return nil
}

// keygen writes a key pair beside each other: NAME.pem and NAME.pub.pem.
func (t console) keygen(args []string) int {
	f := t.flags("keygen")
	out := f.String("out", "fermata-signing", "path of the key pair, without .pem")
	if _, code, ok := t.parse(f, args, 0); !ok {
		return code
	}
	private, public, err := NewSigningKey()
	if err == nil {
		err = writePair(*out+".pem", private, *out+".pub.pem", public)
	}
	if err != nil {
		return t.usage("%v", err)
	}
	key, err := ReadPublicKey(public)
	if err != nil {
		return t.usage("%v", err)
	}
	fmt.Fprintf(t.stdout, "private key  %s.pem\npublic key   %s.pub.pem\nkey id       %s\n", *out, *out, KeyID(key))
	return ExitOK
}

func (t console) newAuthority(args []string) int {
	f := t.flags("authority")
	out := f.String("out", "conformance-ca", "path of the files, without .pem")
	if _, code, ok := t.parse(f, args, 0); !ok {
		return code
	}
	public, private, err := NewAuthority()
	if err == nil {
		err = writePair(*out+".key.pem", private, *out+".pem", public)
	}
	if err != nil {
		return t.usage("%v", err)
	}
	fmt.Fprintf(t.stdout, "for the suite  %s.key.pem (--receiver-ca)\nfor the host   %s.pem (--egress-ca-file of a fermata host)\n", *out, *out)
	return ExitOK
}

// writePair writes two files and never over anything: a key that is lost cannot be
// made again.
func writePair(secret string, private []byte, open string, public []byte) error {
	for _, file := range []struct {
		name string
		text []byte
		mode os.FileMode
	}{{secret, private, 0o600}, {open, public, 0o644}} {
		w, err := os.OpenFile(file.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, file.mode)
		if err != nil {
			return err
		}
		if _, err := w.Write(file.text); err != nil {
			w.Close()
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}
