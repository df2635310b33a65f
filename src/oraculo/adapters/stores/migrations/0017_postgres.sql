-- Breakers of destinations: failures in a row, whether one is open, and its probe.
CREATE TABLE breakers (
  fila            text COLLATE "C" PRIMARY KEY,
  falhas          integer NOT NULL,
  posicao         bigint NOT NULL,
  aberto_em       bigint,
  sonda_em        bigint,
  sonda_run       bigint,
  sonda_ticket    integer,
  sonda_tentativa integer,
  sondas          integer NOT NULL,
  erro            text NOT NULL,
  versao          bigint NOT NULL
);
