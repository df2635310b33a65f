-- Orchestrations, dead letters, schedules, task types and system events belong to a tenant, and have its name in front of
-- their own (core/tenants.py). What there is belongs to `default`. The tenants with how much they may have open at once and
-- submit in a second (NULL: as much as they like).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'BETWEEN 1 AND 128', 'BETWEEN 1 AND 256') WHERE type = 'table' AND name = 'runs';
PRAGMA writable_schema = RESET;
ALTER TABLE runs ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
DROP INDEX runs_by_status;
CREATE INDEX runs_by_status ON runs (tenant, status, run);
ALTER TABLE dead_letters ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
DROP INDEX dead_letters_by_cause;
CREATE INDEX dead_letters_by_cause ON dead_letters (tenant, queue, reason);
CREATE INDEX dead_letters_of_tenants ON dead_letters (tenant, id);
ALTER TABLE schedules ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
CREATE INDEX schedules_of_tenants ON schedules (tenant, nome);
ALTER TABLE task_types ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
CREATE INDEX task_types_of_tenants ON task_types (tenant, tipo);
ALTER TABLE system_events ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
CREATE INDEX system_events_of_tenants ON system_events (tenant, id);
CREATE TABLE tenants (
  name       TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL,
  max_open   INTEGER,
  max_per_s  REAL
) STRICT, WITHOUT ROWID;
