-- What happened to the system itself, not to one orchestration: publishing switched from one broker to another.
CREATE TABLE system_events (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  at   INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
