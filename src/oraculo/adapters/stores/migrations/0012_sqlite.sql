-- Destinations that no order goes to: a queue, or * for all of them.
CREATE TABLE destination_pauses (
  alvo   TEXT PRIMARY KEY,
  ator   TEXT NOT NULL,
  motivo TEXT NOT NULL,
  desde  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
