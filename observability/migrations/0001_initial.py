"""Create the console's tables, the append-only and chained audit, the roles, and indexes for lists."""

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import pipeline.models.fields
import uuid
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

# Audit rows are written once. The application role has no privilege to change them; the triggers
# refuse a change by the owner too. The database's clock sets the time, so no row can be backdated.
CREATE_APPEND_ONLY = """
CREATE FUNCTION is_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_events_are_append_only
  BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION is_append_only();
CREATE FUNCTION audit_events_are_dated() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.created_at := clock_timestamp();
  RETURN NEW;
END $$;
CREATE TRIGGER audit_events_are_dated
  BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION audit_events_are_dated();
"""
DROP_APPEND_ONLY = """
DROP TRIGGER audit_events_are_dated ON audit_events;
DROP FUNCTION audit_events_are_dated();
DROP TRIGGER audit_events_are_append_only ON audit_events;
DROP FUNCTION is_append_only();
"""

# Each audit event gets a link in the hash chain. The trigger takes its lock at commit and not at
# the insert, so a long operator action delays no other. Under READ COMMITTED each statement of the
# function sees all earlier commits, so the SELECT finds the newest link.
# Only this function may insert a link, so it runs with the rights of its owner. A caller's
# search_path could replace its tables, so the path is fixed. A caller's own table could carry the
# trigger and add links of no event, so no caller may attach it, and the function checks its table.
CREATE_AUDIT_CHAIN = """
CREATE FUNCTION audit_events_are_chained() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last public.audit_chain;
  next bigint;
BEGIN
  IF TG_RELID <> 'public.audit_events'::regclass THEN
    RAISE EXCEPTION 'only audit_events has links' USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('audit_chain', 0));
  SELECT * INTO last FROM public.audit_chain ORDER BY seq DESC LIMIT 1;
  next := coalesce(last.seq, 0) + 1;
  INSERT INTO public.audit_chain (seq, event_id, hash) VALUES (next, NEW.id, encode(sha256(
    convert_to(coalesce(last.hash, '') || ' ' || next || ' ' || jsonb_build_object(
      'id', NEW.id,
      'created_at', to_char(NEW.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'),
      'actor', NEW.actor, 'actor_id', NEW.actor_id, 'action', NEW.action,
      'target_kind', NEW.target_kind, 'target_id', NEW.target_id, 'reason', NEW.reason,
      'result', NEW.result, 'facts', NEW.facts)::text, 'UTF8')), 'hex'));
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION audit_events_are_chained(), is_append_only(), audit_events_are_dated()
  FROM PUBLIC;
CREATE CONSTRAINT TRIGGER audit_events_are_chained
  AFTER INSERT ON audit_events DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION audit_events_are_chained();
CREATE TRIGGER audit_chain_is_append_only
  BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
  FOR EACH STATEMENT EXECUTE FUNCTION is_append_only();
CREATE TRIGGER provider_calls_are_append_only
  BEFORE UPDATE OR TRUNCATE ON provider_calls
  FOR EACH STATEMENT EXECUTE FUNCTION is_append_only();
"""
DROP_AUDIT_CHAIN = """
DROP TRIGGER provider_calls_are_append_only ON provider_calls;
DROP TRIGGER audit_chain_is_append_only ON audit_chain;
DROP TRIGGER audit_events_are_chained ON audit_events;
DROP FUNCTION audit_events_are_chained();
"""

NEWEST_FIRST = (
    "user_profiles", "processed_documents", "ai_processing_sessions", "ai_processing_summary",
    "record_batches", "pass05_progressive_sessions", "pass05_chunk_results",
    "pass05_pending_encounters", "pass05_cascade_chains", "pass05_reconciliation_log",
    "pass05_encounter_metrics", "healthcare_encounters", "pass1_encounter_results",
    "pass1_batch_results", "pass1_entity_detections", "pass1_entity_metrics",
    "pass2_zone_results", "pass2_enriched_entities", "pass2_clinical_metrics",
    "record_list_items", "pass3_narrative_results", "pass3_narrative_sentences",
    "pass3_narrative_metrics", "incident_jobs",
)  # fmt: skip
"""Tables whose list is ordered by the time of insertion. This time never changes: an insert appends
to the right end of the index, and an update does not touch the index."""

FILTERED = {
    "shell_files": "status",
    "ai_processing_sessions": "session_status",
    "ai_processing_summary": "processing_status",
    "pass05_progressive_sessions": "status",
    "provider_calls": "step",
}
"""Tables, each with the column by which its list is filtered."""

RARE = {
    "job_queue": ("status", "status <> 'completed'"),
    "pass1_encounter_results": ("status", "status <> 'succeeded'"),
    "pass1_batch_results": ("status", "status <> 'succeeded'"),
    "pass05_chunk_results": ("status", "status <> 'succeeded'"),
    "pass05_pending_encounters": ("status", "status <> 'published'"),
    "pass2_zone_results": ("status", "status <> 'succeeded'"),
    "pass3_narrative_results": ("status", "status <> 'succeeded'"),
    "pass3_narrative_sentences": ("supported", "NOT supported"),
    "pass1_entity_detections": ("alignment", "alignment <> 'exact'"),
    "audit_events": ("result", "result <> 'done'"),
}
"""Tables, each with the column by which its list is filtered, where nearly all rows have one value.
A scan of the newest rows finds the frequent value soon; the index holds the other values only."""

INDEXES = [
    # Read by the failures page: jobs that failed or died, newest first.
    "CREATE INDEX idx_job_queue_ended_badly ON job_queue (completed_at DESC, id DESC)"
    " WHERE status IN ('failed', 'dead')",
    # Read by the failures page: failed calls by their cause.
    "CREATE INDEX idx_provider_calls_cause ON provider_calls (outcome, created_at DESC, id DESC)"
    " WHERE outcome <> 'OK'",
    "CREATE INDEX idx_job_queue_recent ON job_queue (created_at DESC, id DESC)",
    "CREATE INDEX idx_job_queue_dead ON job_queue (completed_at) WHERE status = 'dead'",
    *(
        f"CREATE INDEX idx_{table}_newest ON {table} (created_at DESC, id DESC)"
        for table in NEWEST_FIRST
    ),
    *(
        f"CREATE INDEX idx_{table}_by_{column} ON {table} ({column}, created_at DESC, id DESC)"
        for table, column in FILTERED.items()
    ),
    *(
        f"CREATE INDEX idx_{table}_rare ON {table} ({column}, created_at DESC, id DESC)"
        f" WHERE {condition}"
        for table, (column, condition) in RARE.items()
    ),
    "CREATE INDEX idx_shell_file_pages_rare ON shell_file_pages (source, id DESC)"
    " WHERE source <> 'text_layer'",
    "CREATE INDEX idx_ai_processing_summary_review ON ai_processing_summary"
    " (created_at DESC, id DESC) WHERE manual_review_required",
    # Read by the overview: parked jobs of each pass, and the oldest time. A heartbeat does not write
    # this time, so a heartbeat stays a HOT update.
    "CREATE INDEX idx_job_queue_parked_in ON job_queue (current_step, updated_at)"
    " WHERE status = 'parked'",
    # Read by the preview of a retry by cause: jobs that ended since a time, and jobs that run.
    "CREATE INDEX idx_job_queue_completed ON job_queue (completed_at)",
]
CREATE_INDEXES = ";\n".join(INDEXES)
DROP_INDEXES = ";\n".join(f"DROP INDEX {statement.split()[2]}" for statement in reversed(INDEXES))

ADMINISTRATOR = "administrator"
VIEW = ["view_console"]
OPERATE = [
    "upload_record", "retry_work", "cancel_job", "requeue_job", "reset_stale", "release_job",
    "pause_work", "resume_work",
]
REVIEW = ["read_phi", "review_results", "export_results"]
ROLES = {
    "viewer": VIEW,
    "operator": VIEW + OPERATE,
    "reviewer": VIEW + REVIEW,
    ADMINISTRATOR: VIEW + OPERATE + REVIEW + ["read_audit", "erase_patient"],
}
USERS = ["add_user", "change_user", "view_user", "view_group"]


def create_roles(apps, schema_editor):
    """Create the four roles as groups, with the permissions that `permissions.ROLES` names."""
    # Django creates permissions after all migrations; the roles need them now.
    for label in ("auth", "observability"):
        config = apps.get_app_config(label)
        config.models_module = True
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = None
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for role, codenames in ROLES.items():
        group, _ = Group.objects.get_or_create(name=role)
        group.permissions.add(
            *Permission.objects.filter(
                content_type__app_label="observability", codename__in=codenames
            )
        )
        if role == ADMINISTRATOR:
            group.permissions.add(
                *Permission.objects.filter(content_type__app_label="auth", codename__in=USERS)
            )


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("pipeline", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name='Console',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ],
            options={
                'permissions': [('view_console', "See the console's pages and tables, without PHI"), ('read_phi', 'Read document text, page images, prompts and replies'), ('read_audit', 'Read who did what'), ('upload_record', 'Upload records'), ('retry_work', 'Retry what failed'), ('cancel_job', 'Cancel jobs'), ('requeue_job', 'Requeue dead jobs'), ('reset_stale', 'Reset stale work'), ('release_job', 'Release parked jobs'), ('pause_work', 'Pause queues and providers'), ('resume_work', 'Resume queues and providers'), ('review_results', 'Review results'), ('export_results', 'Export results'), ('erase_patient', "Erase a patient's records")],
                'managed': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='AuditLink',
            fields=[
                ('seq', models.BigIntegerField(primary_key=True, serialize=False)),
                ('event_id', models.UUIDField(unique=True)),
                ('hash', models.TextField()),
            ],
            options={
                'verbose_name': 'link of the audit',
                'verbose_name_plural': 'links of the audit',
                'db_table': 'audit_chain',
                'db_table_comment': "Each audit event's link: sha256 over the previous link and the event. Inserted by a trigger at commit; UPDATE, DELETE and TRUNCATE are refused.",
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='AuditCheck',
            fields=[
                ('id', models.SmallIntegerField(db_default=1, default=1, primary_key=True, serialize=False)),
                ('checked_at', models.DateTimeField(blank=True, null=True)),
                ('fresh_seq', models.BigIntegerField(db_default=0, default=0)),
                ('fresh_hash', models.TextField(blank=True, db_default='', default='')),
                ('full_seq', models.BigIntegerField(db_default=0, default=0)),
                ('full_hash', models.TextField(blank=True, db_default='', default='')),
                ('full_started_at', models.DateTimeField(blank=True, null=True)),
                ('full_finished_at', models.DateTimeField(blank=True, null=True)),
                ('problem', models.TextField(blank=True, db_default='', default='')),
                ('broken_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'verification of the audit',
                'verbose_name_plural': 'verifications of the audit',
                'db_table': 'audit_checks',
                'db_table_comment': 'How far the audit has been verified, and the alarm. One row. No PHI.',
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='audit_checks_one_row')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=pipeline.models.fields.ClockTimestamp(), editable=False)),
                ('actor', models.TextField()),
                ('actor_id', models.BigIntegerField(blank=True, null=True)),
                ('action', models.TextField()),
                ('target_kind', models.TextField()),
                ('target_id', models.TextField(blank=True, db_default='', default='')),
                ('reason', models.TextField(blank=True, db_default='', default='')),
                ('result', models.TextField(choices=[('done', 'done'), ('refused', 'refused'), ('failed', 'failed')], db_default='done', default='done')),
                ('facts', models.JSONField(db_default={}, default=dict)),
            ],
            options={
                'verbose_name': 'audit event',
                'db_table': 'audit_events',
                'db_table_comment': 'Every operator action and every reading of PHI. Append-only: triggers refuse UPDATE, DELETE and TRUNCATE. reason is free text.',
                'default_permissions': (),
                'indexes': [models.Index(fields=['-created_at', '-id'], name='idx_audit_events_recent'), models.Index(fields=['target_id', '-created_at'], name='idx_audit_events_target'), models.Index(fields=['actor', '-created_at'], name='idx_audit_events_actor')],
                'constraints': [models.CheckConstraint(condition=models.Q(('result__in', ['done', 'refused', 'failed'])), name='audit_events_result_check'), models.CheckConstraint(condition=models.Q(models.Q(('actor', ''), _negated=True), models.Q(('action', ''), _negated=True), models.Q(('target_kind', ''), _negated=True)), name='audit_events_words_check')],
            },
        ),
        migrations.CreateModel(
            name='BulkOperation',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('token', models.UUIDField(editable=False, unique=True)),
                ('action', models.TextField()),
                ('selection', models.JSONField()),
                ('expected', models.JSONField(db_default={}, default=dict)),
                ('reason', models.TextField()),
                ('requested_by', models.TextField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('abort_requested_at', models.DateTimeField(blank=True, null=True)),
                ('abort_requested_by', models.TextField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'bulk operation',
                'db_table': 'bulk_operations',
                'db_table_comment': 'Bulk operations: frozen filter, preview, reason, who, when. No PHI.',
                'default_permissions': (),
                'indexes': [models.Index(fields=['-created_at', '-id'], name='idx_bulk_operations_recent'), models.Index(condition=models.Q(('finished_at', None)), fields=['created_at'], name='idx_bulk_operations_open')],
            },
        ),
        migrations.CreateModel(
            name='BulkItem',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('position', models.IntegerField()),
                ('job_id', models.UUIDField()),
                ('shell_file_id', models.UUIDField()),
                ('step', models.TextField(choices=[('pages', 'Pages'), ('pass05', 'Pass05'), ('pass1', 'Pass1'), ('pass1_5', 'Pass1 5'), ('pass2', 'Pass2'), ('pass3', 'Pass3')])),
                ('scope', models.JSONField()),
                ('state', models.TextField(choices=[('waiting', 'waiting'), ('done', 'done'), ('skipped', 'skipped'), ('failed', 'failed')], db_default='waiting', default='waiting')),
                ('message', models.TextField(blank=True, db_default='', default='')),
                ('tries', models.SmallIntegerField(db_default=0, default=0)),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='items', to='observability.bulkoperation')),
            ],
            options={
                'verbose_name': 'item of a bulk operation',
                'verbose_name_plural': 'items of bulk operations',
                'db_table': 'bulk_operation_items',
                'db_table_comment': 'Jobs of a bulk operation with the result of each. No PHI.',
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['operation', 'position'], name='idx_bulk_items_waiting')],
                'constraints': [models.UniqueConstraint(fields=('operation', 'position'), name='idx_bulk_items_position'), models.UniqueConstraint(fields=('operation', 'job_id'), name='idx_bulk_items_once'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'done', 'skipped', 'failed'])), name='bulk_items_state_check')],
            },
        ),
        migrations.RunSQL(CREATE_APPEND_ONLY, DROP_APPEND_ONLY),
        migrations.RunSQL(CREATE_AUDIT_CHAIN, DROP_AUDIT_CHAIN),
        migrations.RunPython(create_roles, migrations.RunPython.noop),
        migrations.RunSQL(CREATE_INDEXES, DROP_INDEXES),
    ]
