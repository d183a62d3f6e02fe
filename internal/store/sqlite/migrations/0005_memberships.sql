-- What the holder of a key belongs to, as JSON arrays of names.
ALTER TABLE keys ADD COLUMN in_groups TEXT NOT NULL DEFAULT '[]';
ALTER TABLE keys ADD COLUMN has_roles TEXT NOT NULL DEFAULT '[]';
