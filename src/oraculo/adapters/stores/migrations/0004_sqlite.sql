-- How far each projection has read the journal (runtime/project.py).
CREATE TABLE cursors (
  name     TEXT PRIMARY KEY,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
