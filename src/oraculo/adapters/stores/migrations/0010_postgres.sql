-- Orchestrations, dead letters, schedules, task types and system events belong to a tenant, and have its name in front of
-- their own (core/tenants.py). What there is belongs to `default`. The tenants with how much they may have open at once and
-- submit in a second (NULL: as much as they like).
ALTER TABLE runs DROP CONSTRAINT runs_correlation_id_check;
ALTER TABLE runs ADD CONSTRAINT runs_correlation_id_check CHECK (length(correlation_id) BETWEEN 1 AND 256) NOT VALID;
ALTER TABLE runs ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT 'default';
DROP INDEX runs_by_status;
CREATE INDEX runs_by_status ON runs (tenant, status, run);
ALTER TABLE dead_letters ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT 'default';
DROP INDEX dead_letters_by_cause;
CREATE INDEX dead_letters_by_cause ON dead_letters (tenant, queue, reason, id);
CREATE INDEX dead_letters_of_tenants ON dead_letters (tenant, id);
ALTER TABLE schedules ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT 'default';
CREATE INDEX schedules_of_tenants ON schedules (tenant, nome);
ALTER TABLE task_types ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT 'default';
CREATE INDEX task_types_of_tenants ON task_types (tenant, tipo);
ALTER TABLE system_events ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT 'default';
CREATE INDEX system_events_of_tenants ON system_events (tenant, id);
CREATE TABLE tenants (
  name       text COLLATE "C" PRIMARY KEY,
  created_at bigint NOT NULL,
  max_open   integer,
  max_per_s  double precision
);
