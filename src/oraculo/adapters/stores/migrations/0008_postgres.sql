-- Schedules: the document, where it stands (both JSON), when it has to be looked at, and how often it was written.
CREATE TABLE schedules (
  nome    text COLLATE "C" PRIMARY KEY,
  body    text NOT NULL,
  state   text NOT NULL,
  due_at  bigint,
  version bigint NOT NULL
);
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
