package host

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// use says how a use case stands to the audit log.
type use int

const (
	reads use = iota
	changes
	exempt // changes something, and is not recorded for a reason that is given
)

// useCases lists every method of Host that a caller can ask for. A new one must be
// added, and one that changes something must go through audited.
var useCases = map[string]use{
	"CancelRun": changes, "ForkRun": changes, "BulkCancel": changes, "PauseRun": changes, "ResumeRun": changes,
	"ResolveInterrupt": changes, "ResolveInterruptFor": changes, "ResolveByToken": changes, "IssueToken": changes, "RotateTokenKeyAs": changes,
	"OperateCompensation": changes, "PutWorkflow": changes, "DeleteWorkflow": changes,
	"RegisterWebhook": changes, "UnregisterWebhook": changes, "RotateWebhookSecret": changes, "EnableWebhook": changes,
	"CreateKey": changes, "RevokeKey": changes, "RotateKey": changes,
	"PutMember": changes, "RemoveMember": changes, "PutRole": changes, "RemoveRole": changes,
	"CreateTenant": changes, "SuspendTenant": changes, "ActivateTenant": changes,
	"RotateAuditKey":   changes,
	"CreateCredential": changes, "RotateCredential": changes, "DeleteCredential": changes, "RotateVault": changes,

	"CreateRun":  exempt, // the run's own log begins with who asked for it; recorded if the operator wants it
	"Once":       exempt, // calls a use case
	"OfferToken": exempt, // shows a reader what the reader may do anyway; what is answered with it is recorded
	// Test seams: a host that mounts them is no host that people use.
	"SeedEra2": exempt, "FireSeam": exempt, "RetryEffect": exempt, "ReceiveDelivery": exempt,

	"ListKeys": reads, "Key": reads, "ListMembers": reads, "Member": reads, "ListRoles": reads, "ListTenants": reads, "Tenant": reads, "Enter": reads,
	"About": reads, "Unprovided": reads, "Ancestry": reads, "DiffRun": reads, "DiffRunIn": reads, "Lineage": reads, "Seams": reads, "AuditKeys": reads, "Compensation": reads, "DeadLetters": reads, "Effects": reads, "ExportAudit": reads, "Head": reads,
	"InspectByToken": reads, "InterruptKind": reads, "ListAudit": reads, "ListInterrupts": reads, "ListRuns": reads, "ListWebhooks": reads,
	"ListSchedules": reads, "ListWorkflows": reads, "OpenLog": reads, "Poll": reads, "DebugBundle": reads, "RunDetail": reads, "Snapshot": reads, "ValidateWorkflow": reads, "VerifyAudit": reads,
	"Credential": reads, "ListCredentials": reads, "Webhook": reads, "Workflow": reads,
}

// writes are the ways in which something of a tenant is changed.
var writes = []string{"engine.Do", "engine.Create", "engine.CreateAlone", "engine.Fork", "Workflows.Put", "Workflows.Delete", "Webhooks.Add", "Webhooks.Remove",
	"Webhooks.Rotate", "Webhooks.Enable", "Keys.Add", "Keys.Replace", "Keys.Revoke", "Members.Put",
	"Members.Remove", "Members.PutRole", "Members.RemoveRole", "Tenants.Add", "Tenants.Update", "Secrets.Add", "Secrets.Drop",
	"Credentials.Add", "Credentials.Rotate", "Credentials.Remove", "Vault.RotateMaster", "Vault.RotateData"}

// Who changes something goes through audited, and who is said to read changes
// nothing.
func TestEveryUseCaseIsAudited(t *testing.T) {
	calls, asked := callGraph(t)
	for name := range asked {
		kind, known := useCases[name]
		if !known {
			t.Errorf("%s is in no list: does it change something?", name)
			continue
		}
		reached := reach(calls, name)
		through := reached["audited"] || reached["audits"]
		var written []string
		for _, w := range writes {
			if reached[w] {
				written = append(written, w)
			}
		}
		switch {
		case kind == changes && !through:
			t.Errorf("%s changes something and does not go through audited", name)
		case kind == changes && len(written) == 0:
			t.Errorf("%s is said to change something: how?", name)
		case kind == reads && (through || len(written) > 0):
			t.Errorf("%s is said to read, and changes something: %v", name, written)
		}
	}
	for name := range useCases {
		if !asked[name] {
			t.Errorf("%s is listed and not there", name)
		}
	}
}

// callGraph reads which functions of the package call which, by name, and which
// methods of Host take a caller or a grant.
func callGraph(t *testing.T) (calls map[string]map[string]bool, asked map[string]bool) {
	t.Helper()
	calls, asked = map[string]map[string]bool{}, map[string]bool{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := fn.Name.Name
			if calls[name] == nil {
				calls[name] = map[string]bool{}
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					maps.Copy(calls[name], called(c.Fun))
				}
				return true
			})
			if fn.Recv != nil && receiver(fn) == "Host" && ast.IsExported(name) && takesCaller(fn) {
				asked[name] = true
			}
		}
	}
	return calls, asked
}

// called names what is called: a function of the package, or a method of a part of
// the store or of the engine as Part.Method.
func called(fun ast.Expr) map[string]bool {
	switch x := fun.(type) {
	case *ast.Ident:
		return map[string]bool{x.Name: x.Name != "make"} // which is no method here
	case *ast.IndexExpr:
		return called(x.X)
	case *ast.SelectorExpr:
		out := map[string]bool{}
		switch of := x.X.(type) {
		case *ast.Ident: // h.cancel
			out[x.Sel.Name] = true
		case *ast.CallExpr: // h.store.Workflows().Put
			if part, ok := of.Fun.(*ast.SelectorExpr); ok {
				out[part.Sel.Name+"."+x.Sel.Name] = true
			}
		case *ast.SelectorExpr: // h.engine.Do, h.cfg.Keys.Add, k.store.Add
			part := of.Sel.Name
			if part == "store" {
				part = "Secrets"
			}
			out[part+"."+x.Sel.Name] = true
			out[x.Sel.Name] = part == "keys" || part == "auditKeys"
		}
		return out
	}
	return nil
}

func receiver(fn *ast.FuncDecl) string {
	if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
		if id, ok := star.X.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

func takesCaller(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(f *ast.Field) bool {
		switch x := f.Type.(type) {
		case *ast.SelectorExpr:
			return x.Sel.Name == "Caller"
		case *ast.Ident:
			return x.Name == "Grant"
		}
		return false
	})
}

func reach(calls map[string]map[string]bool, from string) map[string]bool {
	seen := map[string]bool{}
	todo := []string{from}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		for c, really := range calls[name] {
			if really && !seen[c] {
				seen[c] = true
				todo = append(todo, c)
			}
		}
	}
	return seen
}
