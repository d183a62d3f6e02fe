package v1

import "github.com/go-json-experiment/json"

// interruptProfiles are those of v1's annex that this host keeps to, whichever gate asks
// for them (v1 interrupt-profiles.md): a quorum counts each voter once, a gate may take no
// token, an event must carry its correlation, and cancelling a run cancels its children.
var interruptProfiles = []string{
	"openwop-interrupt-quorum", "openwop-interrupt-auth-required", "openwop-interrupt-external-event", "openwop-interrupt-cascade-cancel",
}

// interrupts says beside the extensions of the host what v1 has of interrupts in that
// place (v1 interrupt-profiles.md §Discovery guidance).
func (a *API) interrupts(root block, f *facts) error {
	if !a.serves("resolveInterruptByRun") {
		return nil
	}
	own := block{}
	if len(f.Extensions) > 0 {
		if err := json.Unmarshal(f.Extensions, &own); err != nil {
			return err
		}
	}
	own["interrupts"] = block{"profiles": interruptProfiles, "signedCallbackTokens": a.serves("resolveInterruptByToken")}
	root["extensions"] = own
	return nil
}
