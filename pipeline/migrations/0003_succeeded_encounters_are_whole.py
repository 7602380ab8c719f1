"""Refuse, at commit, an encounter that has succeeded while one of its batches has not."""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE FUNCTION pass1_encounter_is_whole() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE succeeded integer; others integer;
BEGIN
  SELECT count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status <> 'succeeded')
  INTO succeeded, others
  FROM pass1_batch_results WHERE pass1_encounter_result_id = NEW.id;
  IF others > 0 OR succeeded <> NEW.batches_total THEN
    RAISE EXCEPTION 'encounter result % has batches that did not succeed', NEW.id
      USING ERRCODE = 'check_violation', CONSTRAINT = 'pass1_encounter_is_whole';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER pass1_encounter_is_whole
  AFTER INSERT OR UPDATE OF status ON pass1_encounter_results
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'succeeded')
  EXECUTE FUNCTION pass1_encounter_is_whole();
"""
BACKWARD = """
DROP TRIGGER pass1_encounter_is_whole ON pass1_encounter_results;
DROP FUNCTION pass1_encounter_is_whole();
"""


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0002_on_delete_in_the_database")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
