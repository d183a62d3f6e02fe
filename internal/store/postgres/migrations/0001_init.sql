-- needs: 1
-- Times are unix milliseconds by the host's clock, NULL for none; only leases are
-- times of the database. Names whose grammar is narrow are text that sorts by its
-- bytes; whatever a caller can choose freely (and JSON) is kept as the exact bytes
-- given, in bytea. Tenant, then run, lead every key of what grows with use. A table with
-- "parts" at its end is partitioned by the hash of these columns if the database is
-- made with partitions.

-- Who is alive. A row that is gone is a replica that has been declared lost.
CREATE TABLE instances (
    id          text COLLATE "C" PRIMARY KEY,
    lease_until timestamptz NOT NULL,
    since       timestamptz NOT NULL  -- since when it has beaten without a gap
);

CREATE TABLE runs (
    tenant           text COLLATE "C" NOT NULL,
    run_id           text COLLATE "C" NOT NULL,
    workflow         bytea NOT NULL,
    workflow_version bytea NOT NULL,
    status           text COLLATE "C" NOT NULL,
    seq              bigint NOT NULL,
    epoch            bigint NOT NULL,
    instance         text COLLATE "C",
    wake_at          bigint,
    created_at       bigint,
    started_at       bigint,
    completed_at     bigint,
    current_node     bytea NOT NULL,
    parent_tenant    text COLLATE "C",
    parent_id        text COLLATE "C",
    parent_node      bytea NOT NULL,
    notify           boolean NOT NULL,
    tags             bytea,
    owner            bytea,
    error            bytea,
    compensation     text COLLATE "C",
    fork_mode        text COLLATE "C",
    fork_tenant      text COLLATE "C",
    fork_id          text COLLATE "C",
    fork_seq         bigint NOT NULL,
    fork_options     bytea,
    scope            bytea,
    workspace        bytea,
    PRIMARY KEY (tenant, run_id)
);

-- Parked runs with a timer: what Claim and NextWake look for.
CREATE INDEX runs_wake ON runs (wake_at)
    WHERE wake_at IS NOT NULL AND instance IS NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
-- The same by tenant: whose turn it is when more are due than one claim takes.
CREATE INDEX runs_due ON runs (tenant, wake_at)
    WHERE wake_at IS NOT NULL AND instance IS NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
-- Runs in someone's hands: what Claim looks through for lost instances.
CREATE INDEX runs_instance ON runs (instance, tenant)
    WHERE instance IS NOT NULL
    AND (status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'));
CREATE INDEX runs_status ON runs (tenant, status, run_id) WHERE status <> 'completed';
CREATE INDEX runs_workflow ON runs (tenant, workflow, run_id);
CREATE INDEX runs_workflow_status ON runs (tenant, workflow, status, run_id) WHERE status <> 'completed';
CREATE INDEX runs_parent ON runs (parent_tenant, parent_id, run_id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_scope ON runs (tenant, scope)
    WHERE scope IS NOT NULL AND status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX runs_notify ON runs (run_id) WHERE notify;
CREATE INDEX runs_workspace ON runs (tenant, workspace, run_id) WHERE workspace IS NOT NULL;
CREATE INDEX runs_workspace_status ON runs (tenant, workspace, status, run_id)
    WHERE workspace IS NOT NULL AND status <> 'completed';
CREATE INDEX runs_ended ON runs (tenant, completed_at, run_id) WHERE completed_at IS NOT NULL;

-- Whoever wants a scope alone changes its row here first, so that of two who want
-- it at once one waits for the other. Scopes share a bounded number of rows.
CREATE TABLE scope_turns (
    tenant text COLLATE "C" NOT NULL,
    bucket bigint NOT NULL,
    turn   bigint NOT NULL,
    PRIMARY KEY (tenant, bucket)
);

-- One row per append (a segment): n events from seq on, their documents joined by
-- newlines. sealed is NULL or {"<seq>": <payload before masking>, ...}.
CREATE TABLE events (
    tenant text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    n      bigint NOT NULL,
    body   bytea NOT NULL,
    sealed bytea,
    mark   bigint NOT NULL, -- of the step that wrote it, and of no other
    PRIMARY KEY (tenant, run_id, seq)
); -- parts: tenant, run_id

CREATE TABLE checkpoints (
    tenant text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    state  bytea NOT NULL,
    PRIMARY KEY (tenant, run_id)
); -- parts: tenant, run_id

-- A closed interrupt leaves its place in the order behind, without its data: a
-- reader that pages through the inbox may hold its id as a cursor.
CREATE TABLE interrupts (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    node_id    bytea NOT NULL,
    kind       bytea NOT NULL,
    key        bytea NOT NULL,
    data       bytea,
    created_at bigint NOT NULL,
    expires_at bigint,
    open       boolean NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX interrupts_open ON interrupts (tenant, created_at, id) WHERE open;
CREATE INDEX interrupts_run ON interrupts (tenant, run_id);

-- What is left of a run whose time is over. pending: its log and the like are
-- still there and have to be cleared away.
CREATE TABLE expired (
    tenant     text COLLATE "C" NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    expired_at bigint NOT NULL,
    pending    boolean NOT NULL,
    PRIMARY KEY (tenant, run_id)
);

CREATE INDEX expired_at ON expired (expired_at);
CREATE INDEX expired_pending ON expired (expired_at) WHERE pending;

CREATE TABLE retention_clock (
    id      bigint PRIMARY KEY,
    trusted bigint,
    since   bigint
);

-- ord counts the versions of one workflow in the order they were put.
CREATE TABLE workflows (
    tenant     text COLLATE "C" NOT NULL,
    id         bytea NOT NULL,
    version    bytea NOT NULL,
    ord        bigint NOT NULL,
    digest     bytea NOT NULL,
    definition bytea NOT NULL,
    created_at bigint,
    latest     boolean NOT NULL,
    PRIMARY KEY (tenant, id, version)
);

CREATE INDEX workflows_latest ON workflows (tenant, id) WHERE latest;

-- Whoever changes which version is the latest changes this row first.
CREATE TABLE workflow_turns (
    tenant text COLLATE "C" NOT NULL,
    id     bytea NOT NULL,
    turn   bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- API keys. A key that is being replaced has two hashes; form is false for a hash of
-- an older version.
CREATE TABLE keys (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    hash       bytea NOT NULL,
    form       boolean NOT NULL,
    old_hash   bytea,
    old_until  bigint,
    name       bytea NOT NULL,
    kind       bytea NOT NULL,
    workspace  bytea NOT NULL,
    scopes     bytea NOT NULL,
    in_groups  bytea NOT NULL,
    has_roles  bytea NOT NULL,
    created_at bigint,
    expires_at bigint,
    revoked_at bigint,
    used_at    bigint,
    version    bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX keys_unkeyed ON keys (tenant, id) WHERE NOT form;

-- Both hashes of every key: by them a key is found before its tenant is known, and
-- no two keys can share one, whichever of the two it is.
CREATE TABLE key_hashes (
    hash   bytea PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL
);

CREATE INDEX key_hashes_key ON key_hashes (tenant, id);

CREATE TABLE tenants (
    tenant     text COLLATE "C" NOT NULL PRIMARY KEY,
    name       bytea NOT NULL,
    state      text COLLATE "C" NOT NULL,
    created_at bigint,
    unsettled  boolean NOT NULL,
    version    bigint NOT NULL
);

CREATE INDEX tenants_unsettled ON tenants (tenant) WHERE unsettled;

CREATE TABLE members (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    issuer     bytea NOT NULL,
    subject    bytea NOT NULL,
    name       bytea NOT NULL,
    workspace  bytea NOT NULL,
    in_groups  bytea NOT NULL,
    has_roles  bytea NOT NULL,
    created_at bigint,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE roles (
    tenant     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    scopes     bytea NOT NULL,
    created_at bigint,
    PRIMARY KEY (tenant, name)
);

-- Secrets belong to the host.
CREATE TABLE secrets (
    purpose    text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    value      bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (purpose, id)
);

CREATE TABLE idempotency (
    tenant     text COLLATE "C" NOT NULL,
    endpoint   bytea NOT NULL,
    key        bytea NOT NULL,
    digest     bytea NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    instance   text COLLATE "C",
    attempt    bigint NOT NULL,
    created_at bigint,
    expires_at bigint NOT NULL,
    status     bigint,
    header     bytea,
    body       bytea,
    PRIMARY KEY (tenant, endpoint, key)
);

CREATE INDEX idempotency_expires ON idempotency (expires_at);

CREATE TABLE effects (
    tenant     text COLLATE "C" NOT NULL,
    effect_id  text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL,
    instance   text COLLATE "C",
    claims     bigint NOT NULL,
    at         bigint NOT NULL,
    expires_at bigint NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    node_id    bytea NOT NULL,
    attempt    bigint NOT NULL,
    n          bigint NOT NULL,
    outcome    bytea,
    PRIMARY KEY (tenant, effect_id)
); -- parts: tenant, effect_id

CREATE INDEX effects_expires ON effects (expires_at);

CREATE TABLE effect_attempts (
    tenant        text COLLATE "C" NOT NULL,
    run_id        text COLLATE "C" NOT NULL,
    n             bigint NOT NULL,
    effect_id     text COLLATE "C" NOT NULL,
    node_id       bytea NOT NULL,
    attempt       bigint NOT NULL,
    keying        text COLLATE "C" NOT NULL,
    provider_key  bytea NOT NULL,
    invocation_id bytea NOT NULL,
    state         text COLLATE "C" NOT NULL,
    at            bigint NOT NULL,
    expires_at    bigint NOT NULL,
    PRIMARY KEY (tenant, run_id, n)
); -- parts: tenant, run_id

CREATE INDEX effect_attempts_expires ON effect_attempts (expires_at);

-- Whoever lists an attempt counts it here first.
CREATE TABLE effect_counts (
    tenant text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    PRIMARY KEY (tenant, run_id)
);

CREATE TABLE webhooks (
    tenant         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    url            bytea NOT NULL,
    events         bytea NOT NULL,
    tags           bytea,
    algorithms     bytea,
    secret         bytea NOT NULL,
    previous       bytea NOT NULL,
    rotated_at     bigint,
    previous_until bigint,
    disabled_at    bigint,
    reason         bytea NOT NULL,
    created_at     bigint,
    major          bigint NOT NULL DEFAULT 0, -- of the protocol it was registered under; 0 is this one
    PRIMARY KEY (tenant, id)
);

-- Counts the changes of a tenant's subscriptions, so that a step can tell whether
-- what its replica knows of them still holds. Absent: there never was one.
CREATE TABLE webhook_turns (
    tenant text COLLATE "C" NOT NULL PRIMARY KEY,
    turn   bigint NOT NULL
);

CREATE TABLE delivery_targets (
    tenant        text COLLATE "C" NOT NULL,
    target        text COLLATE "C" NOT NULL,
    url           bytea,
    due_at        bigint,
    resume_at     bigint NOT NULL,
    failures      bigint NOT NULL,
    failing_since bigint,
    PRIMARY KEY (tenant, target)
);

CREATE INDEX delivery_targets_due ON delivery_targets (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE deliveries (
    tenant     text COLLATE "C" NOT NULL,
    target     text COLLATE "C" NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    next_seq   bigint NOT NULL,
    last_seq   bigint NOT NULL,
    attempts   bigint NOT NULL,
    due_at     bigint NOT NULL,
    holder     text COLLATE "C",
    claim      bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, target, run_id)
); -- parts: tenant, target

CREATE INDEX deliveries_due ON deliveries (tenant, target, due_at);
CREATE INDEX deliveries_held ON deliveries (holder) WHERE holder IS NOT NULL;
CREATE INDEX deliveries_run ON deliveries (tenant, run_id);

CREATE TABLE dead_letters (
    tenant      text COLLATE "C" NOT NULL,
    webhook     text COLLATE "C" NOT NULL,
    at          bigint NOT NULL,
    id          text COLLATE "C" NOT NULL,
    run_id      text COLLATE "C" NOT NULL,
    event_id    bytea NOT NULL,
    event_type  bytea NOT NULL,
    attempts    bigint NOT NULL,
    reason      bytea NOT NULL,
    last_status bigint NOT NULL,
    expires_at  bigint NOT NULL,
    PRIMARY KEY (tenant, webhook, at, id)
);

CREATE INDEX dead_letters_expires ON dead_letters (expires_at);

-- Logs of which no run has come yet: their segments are in events, and n counts
-- the events there.
CREATE TABLE staged (
    tenant     text COLLATE "C" NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    n          bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, run_id)
);

CREATE INDEX staged_created ON staged (created_at);

-- The audit log. tenant is the chain: a tenant, or :host. body is the canonical
-- entry. No statement of this program changes one.
CREATE TABLE audit_entries (
    tenant text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);

-- Where each chain ends, how far it is anchored, and since when an entry waits to be.
CREATE TABLE audit_heads (
    tenant   text COLLATE "C" NOT NULL PRIMARY KEY,
    seq      bigint NOT NULL,
    hash     text COLLATE "C" NOT NULL,
    anchored bigint NOT NULL,
    waiting  bigint
);

CREATE INDEX audit_heads_waiting ON audit_heads (tenant) WHERE waiting IS NOT NULL;

CREATE TABLE audit_checkpoints (
    tenant    text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    id        text COLLATE "C" NOT NULL,
    since     bigint NOT NULL,
    root      text COLLATE "C" NOT NULL,
    key_id    text COLLATE "C" NOT NULL,
    signature text COLLATE "C" NOT NULL,
    at        text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);

CREATE TABLE audit_cuts (
    tenant    text COLLATE "C" NOT NULL PRIMARY KEY,
    seq       bigint NOT NULL,
    hash      text COLLATE "C" NOT NULL,
    key_id    text COLLATE "C" NOT NULL,
    signature text COLLATE "C" NOT NULL,
    at        text COLLATE "C" NOT NULL
);

-- Keys that seal values, wrapped by a master key that is not here. The tenant is
-- empty for the host's own.
CREATE TABLE vault_keys (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    master     text COLLATE "C" NOT NULL,
    wrapped    bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- Schedule triggers of the latest versions of workflows. last_run is empty for none.
CREATE TABLE schedules (
    tenant     text COLLATE "C" NOT NULL,
    workflow   bytea NOT NULL,
    trigger_id bytea NOT NULL,
    version    bytea NOT NULL,
    spec       bytea NOT NULL,
    owner      bytea NOT NULL,
    next_at    bigint,
    due_at     bigint,
    last_at    bigint,
    last_run   text COLLATE "C" NOT NULL,
    revision   bigint NOT NULL,
    PRIMARY KEY (tenant, workflow, trigger_id)
);

-- What is due, whosever, and of a tenant.
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_tenant ON schedules (tenant, due_at) WHERE due_at IS NOT NULL;

-- Credentials. sealed and previous are of the versions version and version - 1.
CREATE TABLE credentials (
    tenant         text COLLATE "C" NOT NULL,
    ref            text COLLATE "C" NOT NULL,
    run_id         text COLLATE "C",
    version        bigint NOT NULL,
    meta           bytea NOT NULL,
    sealed         bytea NOT NULL,
    previous       bytea,
    previous_until bigint,
    created_at     bigint NOT NULL,
    rotated_at     bigint,
    PRIMARY KEY (tenant, ref)
);

CREATE INDEX credentials_run ON credentials (tenant, run_id) WHERE run_id IS NOT NULL;

CREATE TABLE credential_turns (
    tenant text COLLATE "C" NOT NULL PRIMARY KEY,
    turn   bigint NOT NULL
);
