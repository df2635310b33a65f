-- Objectives, and alerts that were told: each once, by its id.
CREATE TABLE slos (
  nome        text COLLATE "C" PRIMARY KEY,
  corpo       text NOT NULL,
  ator        text NOT NULL,
  alterado_em bigint NOT NULL
);
CREATE TABLE sla_alerts (
  seq    bigserial PRIMARY KEY,
  id     text COLLATE "C" NOT NULL UNIQUE,
  tenant text NOT NULL,
  run    bigint,
  tipo   text NOT NULL,
  at     bigint NOT NULL,
  corpo  text NOT NULL
);
CREATE INDEX sla_alerts_tenant ON sla_alerts (tenant, seq);
CREATE INDEX sla_alerts_run ON sla_alerts (run) WHERE run IS NOT NULL;
CREATE INDEX sla_alerts_at ON sla_alerts (at);
