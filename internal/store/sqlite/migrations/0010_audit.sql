-- The audit log. tenant is the chain: a tenant, or :host. body is the canonical
-- entry. What is there can be removed by a recorded cut, and never be changed.
CREATE TABLE audit_entries (
    tenant TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_entries_stay BEFORE UPDATE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'an audit entry does not change'); END;

-- Where each chain ends, how far it is anchored, and since when an entry waits to be.
CREATE TABLE audit_heads (
    tenant   TEXT NOT NULL PRIMARY KEY,
    seq      INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    anchored INTEGER NOT NULL,
    waiting  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_heads_waiting ON audit_heads (tenant) WHERE waiting IS NOT NULL;

CREATE TABLE audit_checkpoints (
    tenant    TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    id        TEXT NOT NULL,
    since     INTEGER NOT NULL,
    root      TEXT NOT NULL,
    key_id    TEXT NOT NULL,
    signature TEXT NOT NULL,
    at        TEXT NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_cuts (
    tenant    TEXT NOT NULL PRIMARY KEY,
    seq       INTEGER NOT NULL,
    hash      TEXT NOT NULL,
    key_id    TEXT NOT NULL,
    signature TEXT NOT NULL,
    at        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
