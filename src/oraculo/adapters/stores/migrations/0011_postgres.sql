-- Destinations that no order goes to: a queue, or * for all of them.
CREATE TABLE destination_pauses (
  alvo   text COLLATE "C" PRIMARY KEY,
  ator   text NOT NULL,
  motivo text NOT NULL,
  desde  bigint NOT NULL
);
