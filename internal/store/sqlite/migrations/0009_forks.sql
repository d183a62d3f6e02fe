-- Where a fork comes from; NULL for a run that is none. It is written once.
ALTER TABLE runs ADD COLUMN fork_mode TEXT;
ALTER TABLE runs ADD COLUMN fork_tenant TEXT;
ALTER TABLE runs ADD COLUMN fork_id TEXT;
ALTER TABLE runs ADD COLUMN fork_seq INTEGER;
ALTER TABLE runs ADD COLUMN fork_options BLOB;

-- Logs of which no run has come yet: their segments are in events, and n counts
-- the events there.
CREATE TABLE staged (
    tenant     TEXT NOT NULL,
    run_id     TEXT NOT NULL,
    n          INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX staged_created ON staged (created_at);
