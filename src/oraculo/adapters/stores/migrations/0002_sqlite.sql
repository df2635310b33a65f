-- What happened to the system itself, not to one orchestration: publishing switched to another broker, dead letters were
-- discarded.
CREATE TABLE system_events (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  at   INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
