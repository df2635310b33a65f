-- The JSON Schemas that workers declared for the parameters of their queues.
CREATE TABLE parameter_schemas (
  queue TEXT PRIMARY KEY,
  body  TEXT NOT NULL,
  at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
