-- Requests that carried an Idempotency-Key: key and digest are SHA-256. With a
-- status there is an outcome, and instance is NULL; without one, instance says
-- who works on it, or NULL that nobody does.
CREATE TABLE idempotency (
    tenant     TEXT NOT NULL,
    endpoint   TEXT NOT NULL,
    key        BLOB NOT NULL,
    digest     BLOB NOT NULL,
    run_id     TEXT NOT NULL,
    instance   TEXT,
    attempt    INTEGER NOT NULL,
    created_at INTEGER,
    expires_at INTEGER NOT NULL,
    status     INTEGER,
    header     BLOB,
    body       BLOB,
    PRIMARY KEY (tenant, endpoint, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_expires ON idempotency (expires_at);
