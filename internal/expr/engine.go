package expr

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/parser"
)

// engine is CEL set up for this language. There is one, built by the first
// source that is more than a path: a host whose workflows hold no such source
// never pays for it.
//
// Parser and checker are used directly and not through cel.Env, which offers only
// the ANTLR parser: the hand-written one is some twenty times faster on the
// sources authors write and on hostile ones, and keeps no tables in memory.
type engine struct {
	env     *cel.Env
	parser  *parser.Parser
	checker *checker.Env
	impls   map[string]call // how functions are computed, by name
}

var theEngine = sync.OnceValues(newEngine)

func newEngine() (*engine, error) {
	env, err := cel.NewCustomEnv(
		cel.StdLib(),
		cel.OptionalTypes(),
		// These versions are the last without cost models of their own, which
		// would overrule prices.go.
		ext.Strings(ext.StringsVersion(4), ext.StringsMaxPrecision(100)),
		ext.Lists(ext.ListsVersion(2), ext.ListsMaxRangeSize(maxRange)),
		ext.Math(),
	)
	if err != nil {
		return nil, err
	}
	e := &engine{env: env, impls: map[string]call{}}
	if e.parser, err = parser.NewParser(
		parser.EnablePrattParser(true),
		parser.EnableOptionalSyntax(true),
		parser.Macros(env.Macros()...),
		parser.MaxRecursionDepth(MaxDepth),
		parser.MaxExpressionNodeCount(MaxNodes),
		parser.ExpressionSizeCodePointLimit(MaxSource),
		parser.ErrorReportingLimit(1),
		parser.ErrorRecoveryLimit(1),
	); err != nil {
		return nil, err
	}
	if e.checker, err = newChecker(env); err != nil {
		return nil, err
	}
	for name, fn := range env.Functions() {
		bindings, err := fn.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			if b.Operator == name {
				e.impls[name] = callOf(b)
			}
		}
	}
	e.settle()
	return e, nil
}

// zoned are the overloads that take a time zone's name. They would read the
// machine's zone files, which is I/O and differs between replicas.
var zoned = []string{
	overloads.TimestampToYearWithTz, overloads.TimestampToMonthWithTz,
	overloads.TimestampToDayOfYearWithTz, overloads.TimestampToDayOfMonthZeroBasedWithTz,
	overloads.TimestampToDayOfMonthOneBasedWithTz, overloads.TimestampToDayOfWeekWithTz,
	overloads.TimestampToHoursWithTz, overloads.TimestampToMinutesWithTz,
	overloads.TimestampToSecondsWithTz, overloads.TimestampToMillisecondsWithTz,
}

func newChecker(env *cel.Env) (*checker.Env, error) {
	c, err := checker.NewEnv(env.Container, env.CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, err
	}
	for name, fn := range env.Functions() {
		if fn, err = redeclare(name, fn); err != nil {
			return nil, err
		}
		if fn == nil || fn.IsDeclarationDisabled() {
			continue
		}
		if err := c.AddFunctions(fn); err != nil {
			return nil, err
		}
	}
	return c, c.AddIdents(variables(names)...)
}

// redeclare adapts what CEL's checker knows of a function to what this language
// does: a condition may choose between values of two types, as JSON may hold
// either, and arithmetic mixes numbers (see operator).
func redeclare(name string, fn *decls.FunctionDecl) (*decls.FunctionDecl, error) {
	switch {
	case name == operators.Conditional:
		return decls.NewFunction(name, decls.Overload(overloads.Conditional,
			[]*types.Type{types.BoolType, types.DynType, types.DynType}, types.DynType))
	case arithmetic[name] != nil:
		var opts []decls.FunctionOpt
		for _, t := range []*types.Type{types.IntType, types.UintType} {
			opts = append(opts,
				decls.Overload(name+t.String()+"_double", []*types.Type{t, types.DoubleType}, types.DoubleType),
				decls.Overload(name+"double_"+t.String(), []*types.Type{types.DoubleType, t}, types.DoubleType))
		}
		mixed, err := decls.NewFunction(name, opts...)
		if err != nil {
			return nil, err
		}
		return fn.Merge(mixed)
	}
	return fn.Subset(decls.ExcludeOverloads(zoned...)), nil
}

// variables declares top-level names. Every one is of any type: what they hold
// is known only when a run is.
func variables(names []string) []*decls.VariableDecl {
	out := make([]*decls.VariableDecl, len(names))
	for i, name := range names {
		out[i] = decls.NewVariable(spell(name), types.DynType)
	}
	return out
}

// checkerFor returns a checker that also knows the extra names. It shares the
// declarations of the common one.
func (e *engine) checkerFor(extra []string) (*checker.Env, error) {
	if len(extra) == 0 {
		return e.checker, nil
	}
	c, err := checker.NewEnv(e.env.Container, e.env.CELTypeProvider(),
		checker.CrossTypeNumericComparisons(true), checker.ValidatedDeclarations(e.checker))
	if err != nil {
		return nil, err
	}
	return c, c.AddIdents(variables(extra)...)
}

// call computes a function from its arguments, which are never errors.
type call = functions.FunctionOp

// callOf is the implementation of a binding, whatever its arity.
func callOf(b *functions.Overload) call {
	return func(args ...ref.Val) ref.Val {
		if b.OperandTrait != 0 && (len(args) == 0 || !args[0].Type().HasTrait(b.OperandTrait)) {
			return noOverload()
		}
		switch {
		case len(args) == 1 && b.Unary != nil:
			return b.Unary(args[0])
		case len(args) == 2 && b.Binary != nil:
			return b.Binary(args[0], args[1])
		case b.Function != nil:
			return b.Function(args...)
		}
		return noOverload()
	}
}
