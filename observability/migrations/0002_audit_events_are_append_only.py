"""Refuse to change, delete or truncate what was written down about people's acts."""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE FUNCTION is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_events_are_append_only
  BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION is_append_only();
"""
BACKWARD = """
DROP TRIGGER audit_events_are_append_only ON audit_events;
DROP FUNCTION is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("observability", "0001_console_and_audit_events")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
