-- How much a key may have open at once and submit in a second (NULL: as much as it likes), and the key of the store that
-- asked for an orchestration (NULL: none did).
ALTER TABLE api_keys ADD COLUMN max_open bigint;
ALTER TABLE api_keys ADD COLUMN max_per_s double precision;
ALTER TABLE runs ADD COLUMN owner text COLLATE "C";
CREATE INDEX runs_of_keys ON runs (owner) WHERE owner IS NOT NULL AND closed_at IS NULL;
