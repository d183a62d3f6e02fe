package jsonschema

// Bounds of a schema, checked by Compile.
const (
	// MaxSize is the largest schema, in bytes.
	MaxSize = 256 << 10
	// MaxDepth bounds the nesting of a schema's JSON.
	MaxDepth = 128
	// MaxSubschemas bounds the objects and booleans of a schema's document, each
	// of which may be a subschema.
	MaxSubschemas = 5_000
	// maxReferences bounds the different targets of references, and maxIDs the
	// embedded resources: compiling is quadratic in both.
	maxReferences = 500
	maxIDs        = 100
	// maxChecks bounds the schemas applied to one value without descending into
	// it, and the enumerated values it is compared with.
	maxChecks = 50_000
	// maxHeight bounds how deep those schemas may be within each other. The
	// validator recurses over them at every level of the value.
	maxHeight = 100
	// maxPattern bounds a regular expression, in bytes, and maxProgram what it
	// compiles to, in instructions.
	maxPattern = 4 << 10
	maxProgram = 2_000
)

// Bounds of a value, checked by Validate. Its size is its caller's to bound.
const (
	// MaxValueDepth bounds the nesting of a value.
	MaxValueDepth = 512
	// maxDigits and maxExponent bound a number, whose exact arithmetic would
	// otherwise cost what its exponent says and not what it weighs.
	maxDigits   = 1_000
	maxExponent = 400

	// The budget of one validation: a start, and so much for each token of the
	// value, up to a ceiling. One is what it takes to apply an ordinary schema to
	// a value, about a tenth of a microsecond.
	budgetStart    = 1_000_000
	budgetPerToken = 60
	budgetCeiling  = 5_000_000
)
