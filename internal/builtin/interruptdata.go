package builtin

// dataRules says what the data of each kind of interrupt holds (the protocol's
// suspend request: each kind is a closed object).
var dataRules = map[string][]rule{
	"approval": {
		{"artifactId", true, isText(1, 0)},
		{"artifactType", true, isText(1, 0)},
		{"title", true, isText(1, 0)},
		{"actions", true, isActions},
		{"description", false, isText(0, 0)},
		{"artifactData", false, nil},
		{"requiredApprovals", false, isWhole(1, 1000)},
		{"approversList", false, isListOf(isText(0, 0))},
		{"rejectionPolicy", false, isOneOf("single-veto", "majority")},
		{"overrideBypassesQuorum", false, isA("true or false")},
		{"approverGroupRefs", false, isListOf(isText(0, 0))},
		{"approverRoleRefs", false, isListOf(isText(0, 0))},
		{"audience", false, isObjectOf(
			rule{"subjects", false, isListOf(isText(0, 0))},
			rule{"groups", false, isListOf(isText(0, 0))},
			rule{"roles", false, isListOf(isText(0, 0))},
		)},
	},
	"clarification": {
		{"questions", true, isQuestions},
		{"contextType", false, isText(0, 0)},
	},
	"external-event": {
		{"eventType", true, isText(0, 0)},
		{"correlation", true, isA("an object")},
	},
	"custom": {
		{"customKind", true, isText(1, 0)},
		{"payload", false, nil},
	},
	"conversation.start": {
		{"conversationId", true, isText(1, 256)},
		{"title", false, isText(0, 0)},
		{"initialPrompt", false, isText(0, 0)},
	},
	"conversation.exchange": {
		{"conversationId", true, isText(1, 256)},
		{"prompt", true, isText(1, 0)},
		{"outcomeSchema", false, isA("an object")},
		{"turnIndex", false, isWhole(0, 1<<53)},
	},
	"conversation.close": {
		{"conversationId", true, isText(1, 256)},
		{"reason", false, isText(0, 0)},
	},
	"low-confidence": {
		{"agentId", true, isText(1, 256)},
		{"threshold", true, isShare},
		{"observed", true, isShare},
		{"decision", false, nil},
	},
}
