package flow

import (
	"fmt"

	"github.com/fermata-run/fermata/internal/jsonschema"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxAnswerSchemas bounds the schemas of one interrupt: each answer is held against
// all of them.
const maxAnswerSchemas = 200

type answerSchema struct {
	field  string
	schema jsontext.Value
}

// AnswerSchemas compiles every schema that answers to an interrupt would be held
// against, so that one that cannot be used (it is broken, points elsewhere, costs
// too much) is refused before anybody is asked. It names the member.
func AnswerSchemas(kind string, resume, data jsontext.Value) (field string, err error) {
	all := []answerSchema{{"resumeSchema", resume}}
	var d struct {
		OutcomeSchema jsontext.Value `json:"outcomeSchema"`
		Questions     []struct {
			Schema jsontext.Value `json:"schema"`
		} `json:"questions"`
	}
	// A shape that does not fit is the payload schema's to refuse.
	if len(data) > 0 && json.Unmarshal(data, &d) == nil {
		switch kind {
		case "conversation.exchange":
			all = append(all, answerSchema{"data.outcomeSchema", d.OutcomeSchema})
		case "clarification":
			for i, q := range d.Questions {
				all = append(all, answerSchema{fmt.Sprintf("data.questions[%d].schema", i), q.Schema})
			}
		}
	}
	n := 0
	for _, s := range all {
		if len(s.schema) == 0 || s.schema.Kind() == 'n' {
			continue
		}
		if n++; n > maxAnswerSchemas {
			return s.field, fmt.Errorf("is one of more than %d schemas", maxAnswerSchemas)
		}
		if _, err := jsonschema.Compile(s.schema); err != nil {
			return s.field, fmt.Errorf("cannot be used: %w", err)
		}
	}
	return "", nil
}
