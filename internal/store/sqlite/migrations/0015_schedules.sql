-- Schedule triggers of the latest versions of workflows. Definitions that are here
-- already get theirs when they are registered again. last_run is empty for none.
CREATE TABLE schedules (
    tenant     TEXT NOT NULL,
    workflow   TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    version    TEXT NOT NULL,
    spec       BLOB NOT NULL,
    owner      BLOB NOT NULL,
    next_at    INTEGER,
    due_at     INTEGER,
    last_at    INTEGER,
    last_run   TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    PRIMARY KEY (tenant, workflow, trigger_id)
) STRICT, WITHOUT ROWID;

-- What is due, whosever, and of a tenant.
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_tenant ON schedules (tenant, due_at) WHERE due_at IS NOT NULL;
