-- 1: the plan of the run has a ceiling, which the fleet keeps from the journal; 0: it has none; NULL: written before this
-- was kept.
ALTER TABLE runs ADD COLUMN limited smallint;
