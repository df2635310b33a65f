-- Schedules: the document, where it stands (both JSON), when it has to be looked at, and how often it was written.
CREATE TABLE schedules (
  nome    TEXT PRIMARY KEY,
  body    TEXT NOT NULL,
  state   TEXT NOT NULL,
  due_at  INTEGER,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
