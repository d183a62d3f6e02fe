-- needs: 1
-- Runs of which another instance than their owner has made a step.
CREATE TABLE told (
    tenant   text COLLATE "C" NOT NULL,
    run_id   text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, run_id, instance)
);

CREATE INDEX told_instance ON told (instance);
