-- Subscriptions. events, tags and algorithms are JSON arrays or NULL. They change
-- rarely; how a target fares is kept apart from them.
CREATE TABLE webhooks (
    tenant         TEXT NOT NULL,
    id             TEXT NOT NULL,
    url            TEXT NOT NULL,
    events         BLOB NOT NULL,
    tags           BLOB,
    algorithms     BLOB,
    secret         TEXT NOT NULL,
    previous       TEXT NOT NULL,
    rotated_at     INTEGER,
    previous_until INTEGER,
    disabled_at    INTEGER,
    reason         TEXT NOT NULL,
    created_at     INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Where deliveries go. due_at is the later of resume_at and of what its earliest
-- entry says, NULL if it has none. url is NULL for a subscription.
CREATE TABLE delivery_targets (
    tenant        TEXT NOT NULL,
    target        TEXT NOT NULL,
    url           TEXT,
    due_at        INTEGER,
    resume_at     INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    failing_since INTEGER,
    PRIMARY KEY (tenant, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_targets_due ON delivery_targets (due_at) WHERE due_at IS NOT NULL;

-- One row for a run and a target: the stretch of the run's log that is still to
-- be sent. A taken row is due when its claim ends.
CREATE TABLE deliveries (
    tenant     TEXT NOT NULL,
    target     TEXT NOT NULL,
    run_id     TEXT NOT NULL,
    next_seq   INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    holder     TEXT,
    claim      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, target, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_due ON deliveries (tenant, target, due_at);
CREATE INDEX deliveries_run ON deliveries (tenant, run_id);
CREATE INDEX deliveries_held ON deliveries (holder) WHERE holder IS NOT NULL;

CREATE TABLE dead_letters (
    tenant      TEXT NOT NULL,
    webhook     TEXT NOT NULL,
    at          INTEGER NOT NULL,
    id          TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    event_type  TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    last_status INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, webhook, at, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letters_expires ON dead_letters (expires_at);
