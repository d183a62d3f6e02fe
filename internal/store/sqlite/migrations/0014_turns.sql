-- Parked runs with a timer by tenant, and runs in someone's hands by holder and
-- tenant: whose turn it is when there are more than one claim takes.
CREATE INDEX runs_due ON runs (tenant, wake_at)
    WHERE wake_at IS NOT NULL AND instance IS NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
DROP INDEX runs_instance;
CREATE INDEX runs_instance ON runs (instance, tenant)
    WHERE instance IS NOT NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
