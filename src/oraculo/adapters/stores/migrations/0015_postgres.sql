-- Documents that projections keep, and where each projection stands.
CREATE TABLE projected (
  projecao text COLLATE "C" NOT NULL,
  chave    text COLLATE "C" NOT NULL,
  corpo    text NOT NULL,
  versao   bigint NOT NULL,
  PRIMARY KEY (projecao, chave)
);
CREATE INDEX projected_versao ON projected (projecao, versao);
CREATE TABLE projected_marks (
  projecao text COLLATE "C" PRIMARY KEY,
  versao   bigint NOT NULL,
  posicao  bigint NOT NULL
);
