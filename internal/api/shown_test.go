package api

import "testing"

func TestShown(t *testing.T) {
	for path, want := range map[string]string{
		"/interrupts/ow2.hs256.k.p.m": "/interrupts/{token}", "/interrupts/anything": "/interrupts/{token}",
		"/interrupts/ow2.hs256.k.p.m/x": "/interrupts/{token}/x", "/v1/interrupts/OW2.hs256.k.p.m": "/v1/interrupts/{token}",
		"/runs/default~2F0123456789abcdef/interrupts/ok": "/runs/default~2F0123456789abcdef/interrupts/ok",
		"/v1/interrupts/payload.mac":                     "/v1/interrupts/{token}", "/v1/interrupts": "/v1/interrupts", "/v1/runs/x/interrupts/ok": "/v1/runs/x/interrupts/ok",
		"/host/fermata/interrupts": "/host/fermata/interrupts", "/": "/", "": "", "/interrupts": "/interrupts",
	} {
		if got := Shown(path); got != want {
			t.Errorf("%s is shown as %s", path, got)
		}
	}
}
