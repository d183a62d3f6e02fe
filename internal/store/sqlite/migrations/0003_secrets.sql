-- Keys the host itself signs with. Few, and read whole.
CREATE TABLE secrets (
    purpose    TEXT NOT NULL,
    id         TEXT NOT NULL,
    value      BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (purpose, id)
) STRICT, WITHOUT ROWID;
