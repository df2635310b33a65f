-- Which rows a session sees. `oraculo.tenant` says for whom it reads: '*' is the fleet, which works on everything; a
-- name is a tenant; nothing is nobody. These policies hold from the moment that row-level security is switched on for
-- the tables, which is not done here: processes of an older version, which say nothing, may still be running. They are
-- the members that do not say that they name whom they read for.
ALTER TABLE members ADD COLUMN names_tenant boolean NOT NULL DEFAULT false;

-- Whether a session sees a run. A function, and not a condition in the policies: statements of the fleet would prepare it
-- each time, and never need it.
CREATE FUNCTION oraculo_sees(wanted bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM runs WHERE runs.run = wanted);
END $$;

DO $$
DECLARE one text;
BEGIN
  FOREACH one IN ARRAY ARRAY[
    'runs', 'journal', 'results', 'run_destinos', 'run_rotulos', 'run_origins', 'idempotency_keys', 'unique_keys',
    'dead_letters', 'task_types', 'parameter_schemas', 'schedules', 'counters', 'system_events', 'members', 'cursors',
    'duties', 'api_keys', 'sessions', 'users', 'token_keys', 'data_keys', 'tenants', 'destination_pauses', 'breakers',
    'projected', 'projected_marks', 'slos', 'sla_alerts', 'workers']
  LOOP
    EXECUTE format(
      'CREATE POLICY oraculo_fleet ON %I USING ((SELECT current_setting(''oraculo.tenant'', true)) = ''*'')', one);
  END LOOP;
  -- What a tenant sees: its own rows, and those that belong to a run that it sees.
  FOREACH one IN ARRAY ARRAY['runs', 'sla_alerts'] LOOP
    EXECUTE format(
      'CREATE POLICY oraculo_tenant ON %I FOR SELECT'
      ' USING (tenant = (SELECT current_setting(''oraculo.tenant'', true)))', one);
  END LOOP;
  FOREACH one IN ARRAY ARRAY['journal', 'results', 'run_destinos', 'run_rotulos', 'run_origins', 'idempotency_keys'] LOOP
    EXECUTE format(
      'CREATE POLICY oraculo_tenant ON %I FOR SELECT USING (oraculo_sees(run))', one);
  END LOOP;
  -- What it may change as well.
  FOREACH one IN ARRAY ARRAY['dead_letters', 'system_events', 'schedules'] LOOP
    EXECUTE format(
      'CREATE POLICY oraculo_tenant ON %I USING (tenant = (SELECT current_setting(''oraculo.tenant'', true)))', one);
  END LOOP;
END $$;
