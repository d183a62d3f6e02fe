-- What runs do outside. With a holder the effect is claimed; run_id, node_id and
-- attempt are of the last claim, and n is its row among the run's attempts.
CREATE TABLE effects (
    tenant     TEXT NOT NULL,
    effect_id  TEXT NOT NULL,
    state      TEXT NOT NULL,
    instance   TEXT,
    claims     INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    run_id     TEXT NOT NULL,
    node_id    TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    n          INTEGER NOT NULL,
    outcome    BLOB,
    PRIMARY KEY (tenant, effect_id)
) STRICT;

CREATE INDEX effects_expires ON effects (expires_at);

CREATE TABLE effect_attempts (
    tenant        TEXT NOT NULL,
    run_id        TEXT NOT NULL,
    n             INTEGER NOT NULL,
    effect_id     TEXT NOT NULL,
    node_id       TEXT NOT NULL,
    attempt       INTEGER NOT NULL,
    keying        TEXT NOT NULL,
    provider_key  TEXT NOT NULL,
    invocation_id TEXT NOT NULL,
    state         TEXT NOT NULL,
    at            INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, run_id, n)
) STRICT, WITHOUT ROWID;

CREATE INDEX effect_attempts_expires ON effect_attempts (expires_at);
