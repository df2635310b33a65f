-- Since when a run is paused; null: it is not.
ALTER TABLE runs ADD COLUMN paused_at bigint;
CREATE INDEX runs_paused ON runs (run) WHERE paused_at IS NOT NULL;
