package store

import "strings"

// TablesVersion counts the generations of Tables. Whoever adds a table or a column
// raises it, and gives what is new its own Since: archives of the generations
// before stay readable, and what they do not have is NULL, 0 or empty.
const TablesVersion = 2

// Tables are what a store consists of, for whoever moves one. What a backend has
// beside them is a cache, made from them, or about the processes that use it; each
// backend lists that with the reason, and a test compares both lists with its
// catalogue. The heads and cuts of the audit log come before its entries, so that
// they can be verified on the way.
//
// A column is its name, its kind (text if nothing is said), and ? if it may be NULL
// or ! if it is a fence.
var Tables = []*Table{
	table("tenants", 1, `tenant name:bytes state created_at:int? unsettled:bool version:int`),
	table("members", 2, `tenant id issuer:bytes subject:bytes name:bytes workspace:bytes in_groups:bytes has_roles:bytes created_at:int?`),
	table("roles", 2, `tenant name scopes:bytes created_at:int?`),
	table("keys", 2, `tenant id hash:bytes form:bool old_hash:bytes? old_until:int? name:bytes kind:bytes workspace:bytes scopes:bytes
		in_groups:bytes has_roles:bytes created_at:int? expires_at:int? revoked_at:int? used_at:int? version:int`),
	table("secrets", 2, `purpose id value:bytes created_at:int`),
	table("vault_keys", 2, `tenant id master wrapped:bytes created_at:int`),
	table("credentials", 2, `tenant ref run_id? version:int meta:bytes sealed:bytes previous:bytes? previous_until:int? created_at:int rotated_at:int?`),
	table("workflows", 3, `tenant id:bytes version:bytes ord:int digest:bytes definition:bytes created_at:int? latest:bool`),
	since(2, table("schedules", 3, `tenant workflow:bytes trigger_id:bytes version:bytes spec:bytes owner:bytes next_at:int? due_at:int? last_at:int? last_run
		revision:int`)),
	table("runs", 2, `tenant run_id workflow:bytes workflow_version:bytes status seq:int epoch:int! instance? wake_at:int?
		created_at:int? started_at:int? completed_at:int? current_node:bytes parent_tenant? parent_id? parent_node:bytes notify:bool
		tags:bytes? owner:bytes? error:bytes? scope:bytes? compensation?
		fork_mode? fork_tenant? fork_id? fork_seq:int fork_options:bytes? workspace:bytes?`),
	table("events", 3, `tenant run_id seq:int n:int body:bytes sealed:bytes?`),
	table("staged", 2, `tenant run_id n:int created_at:int`),
	table("interrupts", 2, `tenant id run_id node_id:bytes kind:bytes key:bytes data:bytes? created_at:int expires_at:int? open:bool`),
	table("expired", 2, `tenant run_id expired_at:int pending:bool`),
	table("retention_clock", 1, `id:int trusted:int? since:int?`),
	table("idempotency", 3, `tenant endpoint:bytes key:bytes digest:bytes run_id instance? attempt:int created_at:int? expires_at:int
		status:int? header:bytes? body:bytes?`),
	table("effects", 2, `tenant effect_id state instance? claims:int at:int expires_at:int run_id node_id:bytes attempt:int n:int outcome:bytes?`),
	table("effect_attempts", 3, `tenant run_id n:int effect_id node_id:bytes attempt:int keying provider_key:bytes invocation_id:bytes state
		at:int expires_at:int`),
	table("webhooks", 2, `tenant id url:bytes events:bytes tags:bytes? algorithms:bytes? secret:bytes previous:bytes rotated_at:int?
		previous_until:int? disabled_at:int? reason:bytes created_at:int? major:int`),
	table("delivery_targets", 2, `tenant target url:bytes? due_at:int? resume_at:int failures:int failing_since:int?`),
	table("deliveries", 3, `tenant target run_id next_seq:int last_seq:int attempts:int due_at:int holder? claim:int created_at:int`),
	table("dead_letters", 4, `tenant webhook at:int id run_id event_id:bytes event_type:bytes attempts:int reason:bytes last_status:int expires_at:int`),
	table("audit_heads", 1, `tenant seq:int hash anchored:int waiting:int?`),
	table("audit_cuts", 1, `tenant seq:int hash key_id signature at`),
	table("audit_checkpoints", 2, `tenant seq:int id since:int root key_id signature at`),
	table("audit_entries", 2, `tenant seq:int body:bytes`),
}

func table(name string, key int, columns string) *Table {
	t := &Table{Name: name, Key: key, Since: 1}
	for _, text := range strings.Fields(columns) {
		c := Column{Kind: Text, Since: 1}
		text, c.Null = strings.CutSuffix(text, "?")
		text, c.Fence = strings.CutSuffix(text, "!")
		if name, kind, ok := strings.Cut(text, ":"); ok {
			text, c.Kind = name, Kind(kind)
		}
		c.Name = text
		t.Columns = append(t.Columns, c)
	}
	return t
}

// since makes a table one of a later generation.
func since(generation int, t *Table) *Table {
	t.Since = generation
	for i := range t.Columns {
		t.Columns[i].Since = generation
	}
	return t
}
