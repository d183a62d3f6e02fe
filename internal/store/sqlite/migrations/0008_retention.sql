-- Runs that are over, in the order in which they ended: what retention reads.
CREATE INDEX runs_ended ON runs (tenant, completed_at, run_id) WHERE completed_at IS NOT NULL;

-- What is left of a run whose time is over. pending: its log and the like are
-- still there and have to be cleared away.
CREATE TABLE expired (
    tenant     TEXT NOT NULL,
    run_id     TEXT NOT NULL,
    expired_at INTEGER NOT NULL,
    pending    INTEGER NOT NULL,
    PRIMARY KEY (tenant, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX expired_at ON expired (expired_at);
CREATE INDEX expired_pending ON expired (expired_at) WHERE pending = 1;

-- A run's interrupts go with it.
CREATE INDEX interrupts_run ON interrupts (tenant, run_id);

-- The time retention trusts; one row, or none.
CREATE TABLE retention_clock (
    id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    trusted INTEGER,
    since   INTEGER
) STRICT;
