-- Keys that seal values, wrapped by a master key that is not here. The tenant is
-- empty for the host's own.
CREATE TABLE vault_keys (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    master     TEXT NOT NULL,
    wrapped    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Credentials. sealed and previous are of the versions version and version - 1.
CREATE TABLE credentials (
    tenant         TEXT NOT NULL,
    ref            TEXT NOT NULL,
    run_id         TEXT,
    version        INTEGER NOT NULL,
    meta           BLOB NOT NULL,
    sealed         BLOB NOT NULL,
    previous       BLOB,
    previous_until INTEGER,
    created_at     INTEGER NOT NULL,
    rotated_at     INTEGER,
    PRIMARY KEY (tenant, ref)
) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_run ON credentials (tenant, run_id) WHERE run_id IS NOT NULL;
