package expr

import "cel.dev/cel-go/interpreter"

// meter counts the bytes of raw JSON that one evaluation may still walk. CEL's
// own cost cannot see that work: to it, a megabyte object is one value.
type meter struct{ left int64 }

func newMeter() meter { return meter{left: maxScan} }

// spend takes n bytes of the budget. A spent budget ends the evaluation by a
// panic, as CEL's cost limit does, and CEL turns it into an error: an error
// value would not do, because || may swallow one and go on.
func (m *meter) spend(n int) {
	if m.left -= int64(n); m.left < 0 {
		panic(tooExpensive())
	}
}

func tooExpensive() interpreter.EvalCancelledError {
	return interpreter.EvalCancelledError{
		Cause:   interpreter.CostLimitExceeded,
		Message: "the operation is too expensive",
	}
}

// rescue turns the panic of spend into an error outside of CEL, and any other
// panic with it: an evaluation must never take the host down.
func rescue(source string, err *error) {
	switch r := recover().(type) {
	case nil:
	case interpreter.EvalCancelledError:
		*err = failf(source, "the evaluation is too expensive")
	default:
		*err = failf(source, "internal error: %v", r)
	}
}
