-- NULL for a run of which nothing is undone.
ALTER TABLE runs ADD COLUMN compensation TEXT;

-- A run whose effects are being undone is worked on although its status is final.
DROP INDEX runs_wake;
CREATE INDEX runs_wake ON runs (wake_at)
    WHERE wake_at IS NOT NULL AND instance IS NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
DROP INDEX runs_instance;
CREATE INDEX runs_instance ON runs (instance)
    WHERE instance IS NOT NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
