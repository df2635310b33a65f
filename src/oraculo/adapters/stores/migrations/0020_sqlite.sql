-- Objectives, and alerts that were told: each once, by its id.
CREATE TABLE slos (
  nome        TEXT PRIMARY KEY,
  corpo       TEXT NOT NULL,
  ator        TEXT NOT NULL,
  alterado_em INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sla_alerts (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  id     TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  run    INTEGER,
  tipo   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  corpo  TEXT NOT NULL
) STRICT;
CREATE INDEX sla_alerts_tenant ON sla_alerts (tenant, seq);
CREATE INDEX sla_alerts_run ON sla_alerts (run) WHERE run IS NOT NULL;
CREATE INDEX sla_alerts_at ON sla_alerts (at);
