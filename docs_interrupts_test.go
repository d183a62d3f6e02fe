package fermata_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The examples of the guide to interrupts do what it says, pasted into a shell one
// after the other.
func TestInterruptGuideRuns(t *testing.T) {
	t.Parallel()
	runGuide(t, "docs/interrupts.md", 3, `"mayAnswer":false`, `"notify":{"groups":["finance"]}`, `"status":"waiting-approval"`, `"kind":"approval"`, `"status":"completed"`)
}

// So do those of the guide to the audit log.
func TestAuditGuideRuns(t *testing.T) {
	t.Parallel()
	runGuide(t, "docs/audit.md", 1, `"action":"key.bootstrap"`, `"chainValid":true`, `"signs":true`, `"type":"end"`)
}

func runGuide(t *testing.T, file string, least int, wants ...string) {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	guide, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile("(?ms)^```sh run\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1)
	if len(parts) < least {
		t.Fatalf("%d examples", len(parts))
	}
	script := "set -eu\n"
	for _, p := range parts {
		script += p[1] + "\n"
	}
	s := start(t)
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "HOST="+s.http.URL, "KEY="+testKey, "NO_PROXY=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			t.Errorf("the examples did not print %s:\n%s", want, out)
		}
	}
}
