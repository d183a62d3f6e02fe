package host

import "github.com/fermata-run/fermata/internal/identity"

// Rule says what a use case asks of its caller. Every exported method of Host that
// takes a caller has one: TestEveryUseCaseHasARule calls each without the scope and
// compares.
type Rule struct {
	Scope string // empty for no more than a credential
	Run   bool   // it names a run or a subscription, which must be the caller's
	Also  string // a scope beside the first; empty for none
}

// Rules is the authorization table.
func Rules() map[string]Rule {
	reads, cancels, answers := Rule{Scope: identity.RunsRead, Run: true}, Rule{Scope: identity.RunsCancel, Run: true}, Rule{Scope: identity.ApprovalsRespond, Run: true}
	hooks, hook := Rule{Scope: identity.WebhooksManage}, Rule{Scope: identity.WebhooksManage, Run: true}
	of := func(scope string) Rule { return Rule{Scope: scope} }
	return map[string]Rule{
		"Enter": of(""), // it is how a caller gets its rights
		"Once":  of(""), // the operation inside has its own

		"CreateRun": of(identity.RunsCreate), "ListRuns": of(identity.RunsRead), "BulkCancel": of(identity.RunsCancel),
		"Head": reads, "Snapshot": reads, "RunDetail": reads, "DebugBundle": reads, "OpenLog": reads, "Poll": reads, "Effects": reads, "Compensation": reads,
		"DiffRun": reads, "DiffRunIn": reads, "Ancestry": reads, "Lineage": reads, "ForkRun": {Scope: identity.RunsCreate, Also: identity.RunsRead, Run: true},
		"CancelRun": cancels, "PauseRun": cancels, "ResumeRun": cancels,
		"OperateCompensation": {Scope: identity.CompensationOperate, Run: true},

		"ListInterrupts": of(identity.RunsRead), "ResolveInterrupt": answers, "ResolveInterruptFor": answers, "InterruptKind": answers, "IssueToken": answers,
		"OfferToken":       reads,
		"RotateTokenKeyAs": of(identity.HostAdmin),

		"ValidateWorkflow": of(identity.ManifestRead), "PutWorkflow": of(identity.WorkflowsWrite),
		"Workflow": of(identity.ManifestRead), "ListWorkflows": of(identity.ManifestRead), "DeleteWorkflow": of(identity.WorkflowsWrite),
		"ListSchedules": of(identity.ManifestRead),
		"About":         of(identity.ManifestRead), "Unprovided": of(identity.RunsRead), "Seams": of(identity.ManifestRead),

		"RegisterWebhook": hooks, "ListWebhooks": hooks, "Webhook": hook, "UnregisterWebhook": hook,
		"RotateWebhookSecret": hook, "EnableWebhook": hook, "DeadLetters": hook,

		"CreateKey": of(identity.KeysWrite), "ListKeys": of(identity.KeysRead), "Key": of(identity.KeysRead),
		"RevokeKey": of(identity.KeysWrite), "RotateKey": of(identity.KeysWrite),

		"ListMembers": of(identity.MembersRead), "Member": of(identity.MembersRead),
		"PutMember": of(identity.MembersWrite), "RemoveMember": of(identity.MembersWrite),
		"ListRoles": of(identity.MembersRead), "PutRole": of(identity.RolesWrite), "RemoveRole": of(identity.RolesWrite),

		"CreateTenant": of(identity.HostAdmin), "ListTenants": of(identity.HostAdmin), "Tenant": of(identity.HostAdmin),
		"SuspendTenant": of(identity.HostAdmin), "ActivateTenant": of(identity.HostAdmin),

		"AuditKeys": of(identity.AuditRead), "ListAudit": of(identity.AuditRead), "ExportAudit": of(identity.AuditRead),
		"VerifyAudit": of(identity.AuditRead), "RotateAuditKey": of(identity.AuditManage), // and the operator's tenant

		"CreateCredential": of(identity.CredentialsWrite), "RotateCredential": of(identity.CredentialsWrite),
		"DeleteCredential": of(identity.CredentialsWrite), "Credential": of(identity.CredentialsRead),
		"ListCredentials": of(identity.CredentialsRead), "RotateVault": of(identity.VaultOperate), // and the operator's tenant

		"SeedEra2": of(identity.Seams), "FireSeam": of(identity.Seams), "RetryEffect": of(identity.Seams), "ReceiveDelivery": of(identity.Seams),
	}
}
