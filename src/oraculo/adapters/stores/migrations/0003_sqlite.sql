-- What the overview asks: which open orchestration runs out of time first, and whose tickets fail.
ALTER TABLE runs ADD COLUMN deadline INTEGER;
ALTER TABLE run_destinos ADD COLUMN failed INTEGER NOT NULL DEFAULT 0; -- tickets that failed or timed out, at the end
CREATE INDEX run_failures ON run_destinos (run, destino, failed) WHERE failed > 0;
