-- Who may come in. API keys are rewritten: their tenant leads, and a key that is
-- being replaced has two hashes. form is 0 for a hash of an older version.
CREATE TABLE new_keys (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    hash       BLOB NOT NULL,
    form       INTEGER NOT NULL,
    old_hash   BLOB,
    old_until  INTEGER,
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    in_groups  TEXT NOT NULL,
    has_roles  TEXT NOT NULL,
    created_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at    INTEGER,
    version    INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

INSERT INTO new_keys (tenant, id, hash, form, name, kind, workspace, scopes, in_groups, has_roles, created_at, revoked_at, version)
    SELECT tenant, id, hash, 0, name, 'user', '', scopes, in_groups, has_roles, created_at, revoked_at, 0 FROM keys;
DROP TABLE keys;
ALTER TABLE new_keys RENAME TO keys;

CREATE UNIQUE INDEX keys_hash ON keys (hash);
CREATE UNIQUE INDEX keys_old_hash ON keys (old_hash) WHERE old_hash IS NOT NULL;
CREATE INDEX keys_unkeyed ON keys (tenant, id) WHERE form = 0;

CREATE TABLE tenants (
    tenant     TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    state      TEXT NOT NULL,
    created_at INTEGER,
    unsettled  INTEGER NOT NULL,
    version    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tenants_unsettled ON tenants (tenant) WHERE unsettled = 1;

-- Whoever has a key, a run or a workflow has been a tenant all along.
INSERT INTO tenants (tenant, name, state, created_at, unsettled, version)
    SELECT tenant, '', 'active', min(at), 0, 0 FROM (
        SELECT tenant, created_at AS at FROM keys
        UNION ALL SELECT tenant, created_at FROM runs
        UNION ALL SELECT tenant, created_at FROM workflows)
    GROUP BY tenant;

CREATE TABLE members (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    name       TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    in_groups  TEXT NOT NULL,
    has_roles  TEXT NOT NULL,
    created_at INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE roles (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN workspace TEXT;
CREATE INDEX runs_workspace ON runs (tenant, workspace, run_id) WHERE workspace IS NOT NULL;
