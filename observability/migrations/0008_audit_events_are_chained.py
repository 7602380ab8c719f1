"""Chain the audit: a link of each row, made at commit, in the order of commits."""

from __future__ import annotations

from django.db import migrations, models

# The lock is taken at commit and not at the insert, so that a verb holds up nobody else's. Each
# statement of the function sees what was committed before it, so the newest link is the newest.
FORWARD = """
CREATE FUNCTION audit_events_are_chained() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last audit_chain;
  next bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('audit_chain', 0));
  SELECT * INTO last FROM audit_chain ORDER BY seq DESC LIMIT 1;
  next := coalesce(last.seq, 0) + 1;
  INSERT INTO audit_chain (seq, event_id, hash) VALUES (next, NEW.id, encode(sha256(convert_to(
    coalesce(last.hash, '') || ' ' || next || ' ' || jsonb_build_object(
      'id', NEW.id,
      'created_at', to_char(NEW.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'),
      'actor', NEW.actor, 'actor_id', NEW.actor_id, 'verb', NEW.verb,
      'target_kind', NEW.target_kind, 'target_id', NEW.target_id, 'reason', NEW.reason,
      'result', NEW.result, 'facts', NEW.facts)::text, 'UTF8')), 'hex'));
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER audit_events_are_chained
  AFTER INSERT ON audit_events DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION audit_events_are_chained();
CREATE TRIGGER audit_chain_is_append_only
  BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
  FOR EACH STATEMENT EXECUTE FUNCTION is_append_only();
"""
BACKWARD = """
DROP TRIGGER audit_chain_is_append_only ON audit_chain;
DROP TRIGGER audit_events_are_chained ON audit_events;
DROP FUNCTION audit_events_are_chained();
"""


class Migration(migrations.Migration):
    dependencies = [("observability", "0007_results_of_audit_events_are_choices")]

    operations = [
        migrations.CreateModel(
            name="AuditLink",
            fields=[
                ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
                ("event_id", models.UUIDField(unique=True)),
                ("hash", models.TextField()),
            ],
            options={
                "db_table": "audit_chain",
                "db_table_comment": "Each audit event's link: sha256 over the link before and the "
                "event. Made by a trigger at commit; UPDATE, DELETE and TRUNCATE are refused.",
                "default_permissions": (),
                "verbose_name": "link of the audit",
                "verbose_name_plural": "links of the audit",
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
