-- The protocol's major under which a subscription was registered; 0 is this one.
ALTER TABLE webhooks ADD COLUMN major INTEGER NOT NULL DEFAULT 0;
