package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// Open opens the store that belongs to dir: the same dir gives the same data
// again, another dir an empty store. It fails the test if it cannot. The suite
// closes what it opens; closing twice must be harmless.
type Open func(t *testing.T, dir string) store.Store

// Run checks a backend against the contract.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		test func(e *env)
	}{
		{"round trip", roundTrip},
		{"exact bytes", exactBytes},
		{"large payloads", largePayloads},
		{"sealed payloads", sealedPayloads},
		{"row round trip", rowRoundTrip},
		{"malformed steps", malformedSteps},

		{"stale steps", staleSteps},
		{"create twice", createTwice},
		{"alone in a scope", alone},
		{"row only steps", rowOnlySteps},
		{"reversed commit order", reversedCommitOrder},
		{"steps of several runs", stepsOfSeveralRuns},
		{"checkpoints", checkpoints},

		{"fork rows", forkRows},
		{"staged logs", stagedLogs},
		{"staged again", stagedAgain},
		{"staged alone", stagedAlone},
		{"staged malformed", stagedMalformed},
		{"unstaging", unstaging},

		{"every cursor", everyCursor},
		{"pages by count", pagesByCount},
		{"pages by size", pagesBySize},
		{"long segments", longSegments},

		{"list and filters", listAndFilters},
		{"list order", listOrder},
		{"active runs", activeRuns},
		{"children", children},
		{"news of children", newsOfChildren},
		{"settle in a step", settleInAStep},
		{"tenants", tenants},

		{"interrupts", interrupts},
		{"interrupt pages", interruptPages},
		{"interrupts of tenants", interruptsOfTenants},

		{"instances", instances},
		{"claim lost runs", claimLostRuns},
		{"claim due runs", claimDueRuns},
		{"claim limit", claimLimit},
		{"claim turns", claimTurns},
		{"claim turns of many", claimTurnsOfMany},
		{"claim skipping", claimSkipping},
		{"claim race", claimRace},
		{"told", told},
		{"ends of logs", endsOfLogs},
		{"database time", databaseTime},
		{"instance life", instanceLife},
		{"deregister", deregister},
		{"next wake", nextWake},
		{"claim undoing", claimUndoing},
		{"wake undoing", wakeUndoing},
		{"undoing row", undoingRow},

		{"schedules of versions", schedulesOfVersions},
		{"schedules are claimed", schedulesAreClaimed},
		{"schedules take turns", schedulesTakeTurns},
		{"schedules claimed by many", schedulesClaimedByMany},
		{"schedule pages", schedulePages},
		{"workflow versions", workflowVersions},
		{"workflow list", workflowList},
		{"workflow delete", workflowDelete},
		{"keys", keys},
		{"key updates", keyUpdates},
		{"key races", keyRaces},
		{"key hash races", keyHashRaces},
		{"key uses", keyUses},
		{"tenant records", tenantRecords},
		{"members", memberRecords},
		{"standing", standing},
		{"runs of a workspace", workspaceList},
		{"foreign ids", foreign},
		{"secrets", secrets},
		{"credentials", credentials},
		{"credential rotation", credentialRotation},
		{"credentials of runs", credentialsOfRuns},
		{"vault keys", vaultKeys},
		{"vault cells", vaultCells},

		{"audit chains", auditChains},
		{"audited changes", auditedChanges},
		{"audit race", auditRace},
		{"audit checkpoints", auditCheckpoints},

		{"idempotency records", idempotencyRecords},
		{"idempotency release", idempotencyRelease},
		{"idempotency takeover", idempotencyTakeover},
		{"idempotency race", idempotencyRace},
		{"idempotency rivals", idempotencyRivals},
		{"idempotency purge", idempotencyPurge},
		{"idempotency malformed", idempotencyMalformed},

		{"effect records", effectRecords},
		{"effect states", effectStates},
		{"effect takeover", effectTakeover},
		{"effect rivals", effectRivals},
		{"effect race", effectRace},
		{"effect purge", effectPurge},
		{"effect malformed", effectMalformed},
		{"subscriptions", subscriptions},
		{"queued with a step", queued},
		{"claims of deliveries", claims},
		{"claims of the lost", claimsOfTheLost},
		{"targets of deliveries", targets},
		{"targets by url", urlTargets},
		{"delivery race", takeRace},
		{"dead letters", deadLetters},
		{"expired runs", expiredRuns},
		{"not expired", notExpired},
		{"ended order", endedOrder},
		{"tenant names", tenantNames},
		{"clear in pieces", clearInPieces},
		{"forget tombstones", forgetTombstones},
		{"retention clock", retentionClock},
		{"expire race", expireRace},
		{"reclaim", reclaim},

		{"concurrent runs", concurrentRuns},
		{"concurrent writers of one run", concurrentWriters},
		{"readers beside a writer", readersBesideWriter},
		{"restart", restart},
		{"closed store", closedStore},
		{"ended context", endedContext},
		{"model", model},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(start(t, open))
		})
	}
}

// epoch0 is when all tests happen: no test looks at a real clock.
var epoch0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// env is one test and its own store.
type env struct {
	*testing.T
	ctx  context.Context
	open Open
	dir  string
	s    store.Store
	mint *ids.Minter
	now  time.Time
}

func start(t *testing.T, open Open) *env {
	e := &env{T: t, ctx: t.Context(), open: open, dir: t.TempDir(), mint: &ids.Minter{}, now: epoch0}
	e.s = open(t, e.dir)
	t.Cleanup(func() {
		if err := e.s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// reopen closes the store and opens it again, as a new process would.
func (e *env) reopen() {
	e.Helper()
	e.ok(e.s.Close())
	e.s = e.open(e.T, e.dir)
}

// tick moves time on by one millisecond, so that the next run is a newer one.
func (e *env) tick() time.Time {
	e.now = e.now.Add(time.Millisecond)
	return e.now
}

// id mints the id of a new run, newer than all before.
func (e *env) id(tenant string) ids.Run {
	return ids.Run{Tenant: tenant, Opaque: e.mint.Next(e.tick())}
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("unexpected error: %v", err)
	}
}

// fails checks that err is the one sentinel wanted.
func (e *env) fails(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("error is %v, want %v", err, want)
	}
}
