-- Breakers of destinations: failures in a row, whether one is open, and its probe.
CREATE TABLE breakers (
  fila            TEXT PRIMARY KEY,
  falhas          INTEGER NOT NULL,
  posicao         INTEGER NOT NULL,
  aberto_em       INTEGER,
  sonda_em        INTEGER,
  sonda_run       INTEGER,
  sonda_ticket    INTEGER,
  sonda_tentativa INTEGER,
  sondas          INTEGER NOT NULL,
  erro            TEXT NOT NULL,
  versao          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
