package config

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckEnviron(t *testing.T) {
	for env, want := range map[string]string{
		"FERMATA_LISTENN=x": "did you mean FERMATA_LISTEN?", "FERMATA_MAXCALLS=1": "did you mean FERMATA_MAX_CALLS?",
		"FERMATA_API_KEYS=k": "did you mean FERMATA_API_KEY?", "FERMATA_ALOW_EGRES=x": "did you mean FERMATA_ALLOW_EGRESS?",
		"FERMATA_LISTENN=": "", "FERMATA_LISTEN=x": "", "FERMATA_SERVER=x": "", "FERMATA_CONFIG=x": "", "OTHER_LISTENN=1": "", "FERMATA_TEST_X=1": "",
	} {
		unknown, err := CheckEnviron([]string{"PATH=/", env})
		if len(unknown) > 0 || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", env, unknown, err)
		}
	}
	// What an orchestrator puts there by itself is no slip.
	unknown, err := CheckEnviron([]string{"FERMATA_SERVICE_HOST=10.0.0.1", "FERMATA_PORT=tcp://10.0.0.1:80", "FERMATA_PORT_80_TCP_PROTO=tcp"})
	if err != nil || !slices.Equal(unknown, []string{"FERMATA_PORT", "FERMATA_PORT_80_TCP_PROTO", "FERMATA_SERVICE_HOST"}) {
		t.Errorf("%v %v", unknown, err)
	}
	for i := range settings {
		for j := range settings {
			if a, b := settings[i].Env(), settings[j].Env(); i < j && near(a, b) {
				t.Errorf("%s and %s are hard to tell apart", a, b)
			}
		}
	}
}
