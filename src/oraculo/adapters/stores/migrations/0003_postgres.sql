-- What one member at a time does for all (its epoch), and what the next one has to know.
CREATE TABLE duties (
  name  text COLLATE "C" PRIMARY KEY,
  epoch bigint NOT NULL,
  note  text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
