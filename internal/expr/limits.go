package expr

// The bounds of the language. They are constants because a workflow accepted by
// one replica must not be refused, or end differently, on another.
const (
	// MaxSource is the longest source, path or pattern accepted, in bytes.
	MaxSource = 16 << 10
	// MaxDepth bounds nesting while parsing: parentheses, calls, selections.
	MaxDepth = 100
	// MaxNodes bounds the syntax tree after macros are expanded.
	MaxNodes = 10_000
	// MaxCost bounds one evaluation, in CEL's units: about one per step, and
	// one per ten bytes of string handled.
	MaxCost = 1_000_000
	// MaxResult is the largest JSON text an evaluation may produce, in bytes.
	MaxResult = 16 << 20

	// maxCallWork bounds one function call before it runs, in bytes or elements
	// touched: CEL adds a call's cost only afterwards, too late for a
	// "x".replace("", huge).
	maxCallWork = 10 * MaxCost
	// maxScan bounds the bytes of raw JSON one evaluation may walk, counting a
	// value again for every level of nesting that is indexed around it.
	maxScan = 128 << 20
	// maxRange bounds lists.range, whose result is allocated in one go.
	maxRange = 10_000
	// maxPatternProgram bounds a compiled regular expression, in instructions,
	// and maxPatternWork the product of that and the subject's length.
	maxPatternProgram = 2_000
	maxPatternWork    = 100_000_000
	// maxNesting bounds the recursion of comparing and writing values.
	maxNesting = 1_000
)
