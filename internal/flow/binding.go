package flow

// Source says in words where a binding's value comes from.
func (b *Binding) Source() string {
	switch b.Value.Type {
	case "variable":
		return "variable " + b.Value.VariableName
	case "connection":
		return "output " + b.Value.OutputKey + " of node " + b.Value.NodeID
	case "expression":
		return "expression " + b.Value.Expression
	}
	return "it"
}
