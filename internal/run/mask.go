package run

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Redacted stands for a masked value everywhere outside the host.
const Redacted = `"[REDACTED]"`

// maskValue hides one sensitive value in the workflow's masking mode. It
// reports false where the mode leaves the value as it is. An omitted value is
// returned as nil.
func (s *State) maskValue(v jsontext.Value) (jsontext.Value, bool) {
	switch s.MaskingMode() {
	case "passthrough":
		return v, false
	case "omit":
		return nil, true
	case "hash":
		if len(s.maskSecret) > 0 {
			return jsontext.Value(`"sha256:` + hex.EncodeToString(keyed(s.maskSecret, s.ID.Tenant, v)) + `"`), true
		}
	}
	return jsontext.Value(Redacted), true
}

// keyed is the hash of a value under a tenant's key. Values that people choose are
// few: whoever could compute their hashes without a key would know them. Within a
// tenant equal values have equal hashes, in every run, which is what they are for.
func keyed(secret []byte, tenant string, v jsontext.Value) []byte {
	key := hmac.New(sha256.New, secret)
	key.Write([]byte("mask\x00" + tenant))
	sum := hmac.New(sha256.New, key.Sum(nil))
	sum.Write(v)
	return sum.Sum(nil)
}

// MaskWith gives the secret under which the masking mode hash hashes. It belongs to
// the host, must never change, and is no part of the log or of a checkpoint. Without
// one, hash masks as mask does.
func (s *State) MaskWith(secret []byte) *State {
	s.maskSecret = secret
	return s
}

func (s *State) maskInto(m map[string]jsontext.Value, key string, v jsontext.Value) bool {
	masked, changed := s.maskValue(v)
	if masked == nil {
		delete(m, key)
	} else {
		m[key] = masked
	}
	return changed
}

// maskInputs hides run inputs that feed sensitive variables.
func (s *State) maskInputs(inputs jsontext.Value) (jsontext.Value, bool) {
	if len(inputs) == 0 {
		return inputs, false
	}
	var m map[string]jsontext.Value
	changed := false
	for i := range s.wf.Def.Variables {
		v := &s.wf.Def.Variables[i]
		if !v.Sensitive {
			continue
		}
		if m == nil && json.Unmarshal(inputs, &m) != nil {
			return inputs, false
		}
		if in, ok := m[v.Name]; ok && s.maskInto(m, v.Name, in) {
			changed = true
		}
	}
	if !changed {
		return inputs, false
	}
	return encodeObject(m), true
}

// PublicInputs are the run's inputs as the outside may see them.
func (s *State) PublicInputs() jsontext.Value {
	v, _ := s.maskInputs(s.Inputs)
	return v
}

func (s *State) maskOutputs(step *flow.Step, outputs map[string]stdjson.RawMessage) jsontext.Value {
	m := make(map[string]jsontext.Value, len(outputs))
	for k, v := range outputs {
		m[k] = jsontext.Value(v)
		if s.wf.Hides(step, k) {
			s.maskInto(m, k, jsontext.Value(v))
		}
	}
	return encodeObject(m)
}

// hides reports whether some output must not be shown.
func hides[V any](wf *flow.Workflow, step *flow.Step, outputs map[string]V) bool {
	for k := range outputs {
		if wf.Hides(step, k) {
			return true
		}
	}
	return false
}

// visible is a node's outputs as the outside may see them.
func (s *State) visible(index int) map[string]jsontext.Value {
	step, out := &s.wf.Steps[index], s.Nodes[index].Outputs
	if !hides(s.wf, step, out) {
		return out
	}
	m := make(map[string]jsontext.Value, len(out))
	for k, v := range out {
		m[k] = v
		if s.wf.Hides(step, k) {
			s.maskInto(m, k, v)
		}
	}
	return m
}

// collect gathers the run's outputs from its last steps: the outputs of the one
// step nothing follows, or an object of them by node id where there are several.
func (s *State) collect() (real, masked jsontext.Value, sensitive bool) {
	if len(s.wf.Sinks) == 1 {
		i := s.wf.Sinks[0]
		return s.portion(i)
	}
	r, m := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	for _, i := range s.wf.Sinks {
		if s.Nodes[i].Phase != Done {
			continue
		}
		id := s.wf.Steps[i].Node.ID
		a, b, hidden := s.portion(i)
		r[id], m[id] = a, b
		sensitive = sensitive || hidden
	}
	return encodeObject(r), encodeObject(m), sensitive
}

func (s *State) portion(i int) (real, masked jsontext.Value, sensitive bool) {
	if s.Nodes[i].Phase != Done {
		return jsontext.Value("{}"), jsontext.Value("{}"), false
	}
	real = encodeObject(s.Nodes[i].Outputs)
	if !hides(s.wf, &s.wf.Steps[i], s.Nodes[i].Outputs) {
		return real, real, false
	}
	return real, encodeObject(s.visible(i)), true
}
