package sqlite

import (
	"strings"
	"testing"
)

// TestPlans holds the queries to their indexes: none of them may look at rows
// that it does not want, or sort.
func TestPlans(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	for sql, index := range map[string]string{
		selectRun: "PRIMARY KEY (tenant=? AND run_id=?)", selectCheckpoint: "PRIMARY KEY",
		updateRun: "PRIMARY KEY (tenant=? AND run_id=?)", settleChild: "PRIMARY KEY", claimRun: "PRIMARY KEY",
		selectSegments: "INDEX sqlite_autoindex_events_1 (tenant=? AND run_id=? AND seq>?)",
		listAll:        "PRIMARY KEY (tenant=? AND run_id<?)", listCompleted: "PRIMARY KEY (tenant=? AND run_id<?)",
		listStatus:     "runs_status (tenant=? AND status=? AND run_id<?)",
		countActive:    "runs_status (tenant=? AND status=?)",
		listWorkflow:   "runs_workflow (tenant=? AND workflow=? AND run_id<?)",
		selectChildren: "runs_parent (parent_tenant=? AND parent_id=?)", unsettled: "runs_notify",
		nextHolder: "runs_instance (instance>?", lostRuns: "runs_instance (instance=?)", nextLost: "runs_instance (instance=? AND tenant>?)",
		lostOf: "runs_instance (instance=? AND tenant=?)", nextDue: "runs_due (tenant>?", dueOf: "runs_due (tenant=? AND wake_at",
		dueRuns: "runs_wake (wake_at>? AND wake_at<?)", nextWake: "runs_wake",
		listInterrupts: "interrupts_open (tenant=? AND (created_at,id)>(?,?))",
		interruptPlace: "PRIMARY KEY", closeInterrupt: "PRIMARY KEY",
		getVersion: "PRIMARY KEY (tenant=? AND id=? AND version=?)", getLatest: "workflows_latest (tenant=? AND id=?)",
		listLatest: "workflows_latest (tenant=? AND id>?)", keyByHash: "keys_hash (hash=?)",
		keyByOld: "keys_old_hash (old_hash=?)", keyByID: "PRIMARY KEY (tenant=? AND id=?)", listKeys: "PRIMARY KEY (tenant=? AND id>?)",
		updateKey: "PRIMARY KEY (tenant=? AND id=?)", touchKey: "PRIMARY KEY (tenant=? AND id=?)", unkeyed: "keys_unkeyed",
		selectTenant: "PRIMARY KEY (tenant=?)", listTenants: "PRIMARY KEY (tenant>?)", listUnsettled: "tenants_unsettled (tenant>?)",
		selectMember: "PRIMARY KEY (tenant=? AND id=?)", listMembers: "PRIMARY KEY (tenant=? AND id>?)",
		selectRole: "PRIMARY KEY (tenant=? AND name=?)", listRoles: "PRIMARY KEY (tenant=?)",
		listWorkspace: "runs_workspace (tenant=? AND workspace=? AND run_id<?)",
		selectRecord:  "PRIMARY KEY (tenant=? AND endpoint=? AND key=?)", takeRecord: "PRIMARY KEY (tenant=? AND endpoint=? AND key=?)",
		finishRecord: "PRIMARY KEY", releaseRecord: "PRIMARY KEY", forgetRecord: "PRIMARY KEY",
		selectHook: "PRIMARY KEY (tenant=? AND id=?)", listHooks: "PRIMARY KEY (tenant=? AND id>?)", countHooks: "PRIMARY KEY (tenant=?)",
		growDelivery: "PRIMARY KEY (tenant=? AND target=? AND run_id=?)", heldEntry: "PRIMARY KEY (tenant=? AND target=? AND run_id=?)",
		targetDue: "PRIMARY KEY (tenant=? AND target=?)", reschedule: "deliveries_due (tenant=? AND target=?)",
		dueTargets: "delivery_targets_due (due_at>? AND due_at<?)", nextTarget: "delivery_targets_due",
		dueEntries: "deliveries_due (tenant=? AND target=? AND due_at<?)", lostEntries: "deliveries_held",
		listLetters: "PRIMARY KEY (tenant=? AND webhook=?", purgeLetters: "dead_letters_expires (expires_at<?)",
		selectCredential: "PRIMARY KEY (tenant=? AND ref=?)", rotateCredential: "PRIMARY KEY (tenant=? AND ref=?)",
		listCredentials: "PRIMARY KEY (tenant=? AND ref>?)", countCredentials: "PRIMARY KEY (tenant=?)",
		rewrapData:   "PRIMARY KEY (tenant=? AND id=?)",
		purgeRecords: "idempotency_expires (expires_at<?)",
		selectEffect: "(tenant=? AND effect_id=?)", finishEffect: "(tenant=? AND effect_id=?)",
		finishAttempt: "PRIMARY KEY (tenant=? AND run_id=? AND n=?)", lastAttempt: "PRIMARY KEY (tenant=? AND run_id=?)",
		listAttempts: "PRIMARY KEY (tenant=? AND run_id=? AND n>?)",
		listHeads:    "PRIMARY KEY (tenant>?)", selectHead: "PRIMARY KEY (tenant=?)", unanchored: "audit_heads_waiting (tenant>?)", anchorHead: "PRIMARY KEY (tenant=?)",
		entriesAfter: "PRIMARY KEY (tenant=? AND seq>?)", entriesBelow: "PRIMARY KEY (tenant=? AND seq<?)",
		listPoints: "PRIMARY KEY (tenant=? AND seq>?)", selectCut: "PRIMARY KEY (tenant=?)", dropEntries: "PRIMARY KEY (tenant=? AND seq=?)",
		purgeEffects: "effects_expires (expires_at<?)", purgeAttempts: "effect_attempts_expires (expires_at<?)",
		nextTenant: "(tenant>?)", selectEnded: "runs_ended (tenant=? AND (completed_at,run_id)>(?,?) AND (completed_at,run_id)<(?,?))",
		endOf: "runs_ended (tenant=?", queuedOf: "deliveries_run (tenant=? AND run_id=?)", needingChild: "runs_parent (parent_tenant=? AND parent_id=?)",
		goingRun: "PRIMARY KEY (tenant=? AND run_id=?)", deleteRun: "PRIMARY KEY (tenant=? AND run_id=?)",
		selectExpired: "PRIMARY KEY (tenant=? AND run_id=?)", clearedRun: "PRIMARY KEY (tenant=? AND run_id=?)",
		hideInterrupts: "interrupts_run (tenant=? AND run_id=?)", deleteInterrupts: "interrupts_run (tenant=? AND run_id=?)",
		measureEvents: "sqlite_autoindex_events_1 (tenant=? AND run_id=?)", deleteEvents: "(tenant=? AND run_id=? AND seq<?)",
		deleteCheckpoint: "PRIMARY KEY (tenant=? AND run_id=?)", forgetExpired: "expired_at (expired_at<?)",
		selectPending:     "expired_pending",
		workflowSchedules: "PRIMARY KEY (tenant=? AND workflow=?)", dropSchedules: "PRIMARY KEY (tenant=? AND workflow=?)",
		adoptSchedule: "PRIMARY KEY (tenant=? AND workflow=? AND trigger_id=?)", moveSchedule: "PRIMARY KEY (tenant=? AND workflow=? AND trigger_id=?)",
		dueSchedules: "schedules_due (due_at<?)", nextPunctual: "schedules_tenant (tenant>?)", dueSchedulesOf: "schedules_tenant (tenant=? AND due_at<?)",
		nextSchedule: "schedules_due", listSchedules: "PRIMARY KEY (tenant=? AND (workflow,trigger_id)>(?,?))",
	} {
		plan := strings.ReplaceAll(explain(t, s, sql), "SCAN json_each", "") // a list that was given
		if !strings.Contains(plan, index) {
			t.Errorf("plan does not use %s:\n%s\n%s", index, sql, plan)
		}
		ordered := sql == unsettled || sql == nextWake || sql == nextTarget || sql == selectPending || sql == unkeyed // scans of a partial index that stop at once
		if strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "SCAN") && !ordered {
			t.Errorf("plan scans or sorts:\n%s\n%s", sql, plan)
		}
	}
}

func explain(t *testing.T, s *Store, sql string) string {
	t.Helper()
	var plan strings.Builder
	err := s.readers.read(t.Context(), func(c *conn) error {
		return c.prep(`EXPLAIN QUERY PLAN ` + sql).each(func(r *row) (bool, error) {
			r.i = 3 // the column with the text
			plan.WriteString(r.text() + "\n")
			return true, nil
		})
	})
	if err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
	return plan.String()
}
