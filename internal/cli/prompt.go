package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-run/fermata/client"
)

// prompter asks a person what a run wants to know.
type prompter struct {
	out   io.Writer
	lines *lineReader
}

func (p *prompter) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *prompter) read(ctx context.Context, label string) (string, error) {
	fmt.Fprintf(p.out, "%s ", label)
	s, err := p.lines.next(ctx)
	if err != nil {
		fmt.Fprintln(p.out)
	}
	return strings.TrimSpace(s), err
}

// ask shows a request and returns the answer to send.
func (p *prompter) ask(ctx context.Context, r client.Request) (json.RawMessage, error) {
	switch r.Kind {
	case "approval", "low-confidence":
		return p.approval(ctx, r)
	case "clarification":
		return p.clarification(ctx, r)
	}
	return p.other(ctx, r)
}

// approval asks for one of the actions offered.
func (p *prompter) approval(ctx context.Context, r client.Request) (json.RawMessage, error) {
	var d approvalData
	_ = json.Unmarshal(r.Data, &d)
	p.say("\n%s", plain(titleOf(r)))
	if d.Description != "" {
		fmt.Fprint(p.out, paragraphs(d.Description, "  "))
	}
	p.show(d.ArtifactData)
	if d.RequiredApprovals > 1 {
		p.say("  It needs %d approvals; yours counts once.", d.RequiredApprovals)
	}
	actions := actionsOf(r)
	keys := shortcuts(actions)
	var offer []string
	for i, a := range actions {
		offer = append(offer, keys[i]+" "+a)
	}
	for {
		s, err := p.read(ctx, "["+strings.Join(offer, ", ")+"]?")
		if err != nil {
			return nil, err
		}
		action := choose(s, actions, keys)
		if action == "" {
			p.say("  Please answer with one of: %s.", strings.Join(actions, ", "))
			continue
		}
		return p.finish(ctx, action)
	}
}

// shortcuts gives each action the shortest beginning that tells it apart.
func shortcuts(actions []string) []string {
	out := make([]string, len(actions))
	for i, a := range actions {
		for n := 1; n <= len(a); n++ {
			out[i] = a[:n]
			clash := false
			for j, b := range actions {
				clash = clash || i != j && strings.HasPrefix(b, a[:n])
			}
			if !clash {
				break
			}
		}
	}
	return out
}

// choose finds the action that was typed: in full, or as a beginning that only
// one action has.
func choose(s string, actions, keys []string) string {
	s = strings.ToLower(s)
	if s == "" {
		return ""
	}
	found := ""
	for i, a := range actions {
		if s == a || s == keys[i] {
			return a
		}
		if strings.HasPrefix(a, s) {
			if found != "" {
				return ""
			}
			found = a
		}
	}
	return found
}

// finish asks for what an action needs beside its name.
func (p *prompter) finish(ctx context.Context, action string) (json.RawMessage, error) {
	switch action {
	case "refine":
		for {
			s, err := p.read(ctx, "What should change?")
			if err != nil {
				return nil, err
			}
			if s != "" {
				return decide(action, s, nil)
			}
		}
	case "edit-accept":
		v, err := p.json(ctx, "The edited artifact, as JSON (or @file):", nil)
		if err != nil {
			return nil, err
		}
		return decide(action, "", v)
	case "ask":
		s, err := p.read(ctx, "Your question:")
		if err != nil {
			return nil, err
		}
		return decide(action, s, nil)
	}
	return decide(action, "", nil)
}

// clarification asks question after question.
func (p *prompter) clarification(ctx context.Context, r client.Request) (json.RawMessage, error) {
	var d questionsData
	_ = json.Unmarshal(r.Data, &d)
	answers := make(map[string]json.RawMessage, len(d.Questions))
	p.say("")
	for _, q := range d.Questions {
		v, err := p.json(ctx, plain(q.Question)+hint(q.Schema), q.Schema)
		if err != nil {
			return nil, err
		}
		answers[q.ID] = v
	}
	return marshal(map[string]any{"answers": answers})
}

// other asks for the answer to a request of any other kind.
func (p *prompter) other(ctx context.Context, r client.Request) (json.RawMessage, error) {
	var d otherData
	_ = json.Unmarshal(r.Data, &d)
	p.say("\n%s", plain(titleOf(r)))
	p.show(d.Payload)
	label := "Your answer, as JSON (or @file):"
	switch r.Kind {
	case "external-event":
		label = "The event, as JSON (or @file), to deliver it here:"
	case "conversation.start", "conversation.exchange":
		label = "You:"
	}
	return p.json(ctx, label, r.ResumeSchema)
}

// show prints an artifact the way a person reads it.
func (p *prompter) show(v json.RawMessage) {
	if len(v) == 0 || string(v) == "null" {
		return
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		fmt.Fprint(p.out, paragraphs(text, "  │ "))
		return
	}
	if b, err := indent(v); err == nil {
		fmt.Fprint(p.out, paragraphs(string(b), "  │ "))
	}
}

// json reads a value until it fits what the schema says of its type. The host
// checks the rest.
func (p *prompter) json(ctx context.Context, label string, schema json.RawMessage) (json.RawMessage, error) {
	for {
		s, err := p.read(ctx, label)
		if err != nil {
			return nil, err
		}
		if s == "" {
			continue
		}
		v, err := answerValue(s, schema)
		if err == nil {
			return v, nil
		}
		p.say("  %s", plain(err.Error()))
	}
}
