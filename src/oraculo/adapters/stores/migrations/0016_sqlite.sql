-- Documents that projections keep, and where each projection stands.
CREATE TABLE projected (
  projecao TEXT NOT NULL,
  chave    TEXT NOT NULL,
  corpo    TEXT NOT NULL,
  versao   INTEGER NOT NULL,
  PRIMARY KEY (projecao, chave)
) STRICT, WITHOUT ROWID;
CREATE INDEX projected_versao ON projected (projecao, versao);
CREATE TABLE projected_marks (
  projecao TEXT PRIMARY KEY,
  versao   INTEGER NOT NULL,
  posicao  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
