-- Times are unix milliseconds, NULL for none. Text that is empty in Go and has
-- an index of its own (instance, parent) is NULL here, so that the partial
-- indexes stay small. JSON is kept as the exact bytes given, in BLOB columns.

-- run_id sorts by creation, so the newest-first list is a descending scan of
-- the primary key, and new rows land at the end of their tenant.
CREATE TABLE runs (
    tenant           TEXT NOT NULL,
    run_id           TEXT NOT NULL,
    workflow         TEXT NOT NULL,
    workflow_version TEXT NOT NULL,
    status           TEXT NOT NULL,
    seq              INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    instance         TEXT,
    wake_at          INTEGER,
    created_at       INTEGER,
    started_at       INTEGER,
    completed_at     INTEGER,
    current_node     TEXT NOT NULL,
    parent_tenant    TEXT,
    parent_id        TEXT,
    parent_node      TEXT NOT NULL,
    notify           INTEGER NOT NULL,
    tags             BLOB,
    owner            BLOB,
    error            BLOB,
    scope            TEXT,
    PRIMARY KEY (tenant, run_id)
) STRICT, WITHOUT ROWID;

-- Parked runs with a timer: what Claim and NextWake look for.
CREATE INDEX runs_wake ON runs (wake_at)
    WHERE wake_at IS NOT NULL AND instance IS NULL
    AND status NOT IN ('completed', 'failed', 'cancelled');
-- Runs in someone's hands: what Claim looks through for lost instances.
CREATE INDEX runs_instance ON runs (instance)
    WHERE instance IS NOT NULL
    AND status NOT IN ('completed', 'failed', 'cancelled');
-- Most runs of an old database are completed; they are listed without it.
CREATE INDEX runs_status ON runs (tenant, status, run_id) WHERE status <> 'completed';
CREATE INDEX runs_workflow ON runs (tenant, workflow, run_id);
CREATE INDEX runs_parent ON runs (parent_tenant, parent_id, run_id) WHERE parent_id IS NOT NULL;
-- At most one active run of a scope is wanted by callers who ask for that.
CREATE INDEX runs_scope ON runs (tenant, scope)
    WHERE scope IS NOT NULL AND status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX runs_notify ON runs (run_id) WHERE notify = 1;

-- One row per append (a segment): n events from seq on, their documents joined
-- by newlines. It keeps its rowid: in a tree of keys alone nearly every body would
-- spill to a page of its own. sealed is NULL or {"<seq>": <payload before masking>, ...}.
CREATE TABLE events (
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    body   BLOB NOT NULL,
    sealed BLOB,
    PRIMARY KEY (tenant, run_id, seq)
) STRICT;

CREATE TABLE checkpoints (
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    state  BLOB NOT NULL,
    PRIMARY KEY (tenant, run_id)
) STRICT, WITHOUT ROWID;

-- A closed interrupt leaves its place in the order behind, without its data: a
-- reader that pages through the inbox may hold its id as a cursor.
CREATE TABLE interrupts (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    run_id     TEXT NOT NULL,
    node_id    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    data       BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    open       INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX interrupts_open ON interrupts (tenant, created_at, id) WHERE open = 1;

-- ord counts the versions of one workflow in the order they were put.
CREATE TABLE workflows (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    TEXT NOT NULL,
    ord        INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    definition BLOB NOT NULL,
    created_at INTEGER,
    latest     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id, version)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX workflows_latest ON workflows (tenant, id) WHERE latest = 1;

CREATE TABLE keys (
    id         TEXT NOT NULL PRIMARY KEY,
    hash       BLOB NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
