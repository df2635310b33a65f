-- More limits of a tenant: dead letters that are kept, bytes of bodies in a second, streams at once (NULL: no limit).
ALTER TABLE tenants ADD COLUMN max_dead_letters bigint;
ALTER TABLE tenants ADD COLUMN max_bytes_per_s double precision;
ALTER TABLE tenants ADD COLUMN max_streams bigint;
