-- How far each projection has read the journal (runtime/project.py), and which member moves it: its epoch, and NULL for
-- one that did not join.
CREATE TABLE cursors (
  name     text COLLATE "C" PRIMARY KEY,
  position bigint NOT NULL,
  epoch    bigint
) WITH (fillfactor = 50);
