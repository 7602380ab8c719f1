"""Add the review queue, the decisions of reviewers, and the triggers that keep what they decided."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import pipeline.models.fields
import uuid
from django.db import migrations, models

from pipeline.migrations import _review_guard
from pipeline.migrations._on_delete import set_on_delete_rules


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0008_vectors_of_texts'),
    ]

    operations = [
        migrations.CreateModel(
            name='LockedField',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('category', models.TextField()),
                ('page_number', models.IntegerField()),
                ('char_start', models.IntegerField(blank=True, null=True)),
                ('char_end', models.IntegerField(blank=True, null=True)),
                ('field', models.TextField()),
                ('entity_id', models.UUIDField()),
                ('unmatched_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'locked field',
                'verbose_name_plural': 'locked fields',
                'db_table': 'locked_fields',
                'db_table_comment': 'Fields that a person decided. Written by a trigger of review_decisions alone. No PHI.',
            },
        ),
        migrations.CreateModel(
            name='ReviewDecision',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=pipeline.models.fields.ClockTimestamp(), editable=False)),
                ('transaction_no', models.BigIntegerField(db_default=0, default=0, editable=False)),
                ('token', models.UUIDField(editable=False)),
                ('part', models.IntegerField(db_default=0, default=0)),
                ('entity_id', models.UUIDField(blank=True, null=True)),
                ('action', models.TextField(choices=[('accept', 'Accept'), ('correct', 'Correct'), ('reject', 'Reject'), ('add', 'Add'), ('move', 'Move'), ('reopen', 'Reopen')])),
                ('category', models.TextField(blank=True, null=True)),
                ('page_number', models.IntegerField(blank=True, null=True)),
                ('char_start', models.IntegerField(blank=True, null=True)),
                ('char_end', models.IntegerField(blank=True, null=True)),
                ('field', models.TextField()),
                ('old_value', models.JSONField(blank=True, null=True)),
                ('new_value', models.JSONField(blank=True, null=True)),
                ('reason', models.TextField(db_default='', default='')),
                ('decided_by', models.TextField()),
                ('round', models.SmallIntegerField(choices=[(1, 'First'), (2, 'Second'), (3, 'Settling')])),
                ('engine', models.TextField(db_default='', default='')),
                ('rule', models.TextField(db_default='', default='')),
                ('prompt_version', models.TextField(db_default='', default='')),
            ],
            options={
                'verbose_name': 'review decision',
                'verbose_name_plural': 'review decisions',
                'db_table': 'review_decisions',
                'db_table_comment': 'Decisions of reviewers with old and new values. Append-only: triggers refuse UPDATE, DELETE and TRUNCATE. PHI.',
            },
        ),
        migrations.AlterModelTableComment(
            name='reviewitem',
            table_comment='One review for each upload: reason, priority, claim. No PHI.',
        ),
        migrations.RemoveConstraint(
            model_name='reviewitem',
            name='review_items_reason_check',
        ),
        migrations.AddField(
            model_name='entity',
            name='verdict',
            field=models.TextField(blank=True, choices=[('accepted', 'Accepted'), ('corrected', 'Corrected'), ('rejected', 'Rejected'), ('added', 'Added'), ('disputed', 'Disputed')], null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='base',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='claimed_by',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='claimed_until',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='closed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='closed_by',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='complexity',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='confidence',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='figures',
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='first_reviewer',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='is_double',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='lane',
            field=models.TextField(choices=[('urgent', 'Urgent'), ('normal', 'Normal'), ('low', 'Low'), ('overdue', 'Overdue')], db_default='normal', default='normal'),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='opened_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='order_key',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='round',
            field=models.SmallIntegerField(choices=[(1, 'First'), (2, 'Second'), (3, 'Settling')], db_default=1, default=1),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='round_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='skipped_by',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), db_default=[], default=list, size=None),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='sla',
            field=models.TextField(choices=[('urgent', 'urgent'), ('normal', 'normal'), ('low', 'low')], db_default='normal', default='normal'),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='value',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='weighed_by',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='reason',
            field=models.TextField(choices=[('mismatch', 'Mismatch'), ('failed', 'Failed'), ('flagged', 'Flagged'), ('completed', 'Completed')]),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(models.F('lane'), models.OrderBy(models.F('order_key'), descending=True), models.F('id'), condition=models.Q(('status', 'open')), name='idx_review_items_queue'),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(condition=models.Q(('status', 'open'), models.Q(('lane', 'overdue'), _negated=True)), fields=['due_at'], name='idx_review_items_due'),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(condition=models.Q(('status', 'open')), fields=['weighed_by', 'id'], name='idx_review_items_weighed'),
        ),
        migrations.AddConstraint(
            model_name='entity',
            constraint=models.CheckConstraint(condition=models.Q(('verdict__in', ['accepted', 'corrected', 'rejected', 'added', 'disputed'])), name='pass1_entity_verdict_check'),
        ),
        migrations.AddConstraint(
            model_name='entity',
            constraint=models.CheckConstraint(condition=models.Q(('verdict__isnull', True), models.Q(('accepted', True), ('verdict__in', ('accepted', 'corrected', 'added'))), models.Q(('accepted', False), ('verdict__in', ['rejected', 'disputed'])), _connector='OR'), name='pass1_entity_accepted_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['mismatch', 'failed', 'flagged', 'completed'])), name='review_items_reason_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('lane__in', ['urgent', 'normal', 'low', 'overdue'])), name='review_items_lane_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('round__in', [1, 2, 3])), name='review_items_round_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('complexity__gte', 0), ('complexity__lte', 1), ('value__gte', 0), ('value__lte', 1), models.Q(('confidence__isnull', True), models.Q(('confidence__gte', 0), ('confidence__lte', 1)), _connector='OR')), name='review_items_parts_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('claimed_until__isnull', True), ('claimed_by__isnull', False), _connector='OR'), name='review_items_claim_check'),
        ),
        migrations.AddField(
            model_name='lockedfield',
            name='healthcare_encounter',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.encounter'),
        ),
        migrations.AddField(
            model_name='lockedfield',
            name='shell_file',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='locked_fields', to='pipeline.shellfile'),
        ),
        migrations.AddField(
            model_name='reviewdecision',
            name='healthcare_encounter',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.encounter'),
        ),
        migrations.AddField(
            model_name='reviewdecision',
            name='review_item',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='pipeline.reviewitem'),
        ),
        migrations.AddField(
            model_name='reviewdecision',
            name='shell_file',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='review_decisions', to='pipeline.shellfile'),
        ),
        migrations.AddField(
            model_name='lockedfield',
            name='decision',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.reviewdecision'),
        ),
        migrations.AddIndex(
            model_name='reviewdecision',
            index=models.Index(fields=['-created_at', '-id'], name='idx_review_decisions_newest'),
        ),
        migrations.AddIndex(
            model_name='reviewdecision',
            index=models.Index(fields=['entity_id', 'field'], name='idx_review_decisions_entity'),
        ),
        migrations.AddIndex(
            model_name='reviewdecision',
            index=models.Index(fields=['shell_file'], name='idx_review_decisions_shell'),
        ),
        migrations.AddIndex(
            model_name='reviewdecision',
            index=models.Index(fields=['review_item'], name='idx_review_decisions_item'),
        ),
        migrations.AddConstraint(
            model_name='reviewdecision',
            constraint=models.UniqueConstraint(fields=('token', 'part'), name='idx_review_decisions_once'),
        ),
        migrations.AddConstraint(
            model_name='reviewdecision',
            constraint=models.CheckConstraint(condition=models.Q(('action__in', ['accept', 'correct', 'reject', 'add', 'move', 'reopen'])), name='review_decisions_action_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewdecision',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('field', ''), _negated=True), models.Q(('decided_by', ''), _negated=True)), name='review_decisions_words_check'),
        ),
        migrations.AddIndex(
            model_name='lockedfield',
            index=models.Index(fields=['healthcare_encounter', 'category', 'page_number', 'char_start', 'char_end'], name='idx_locked_fields_place'),
        ),
        migrations.AddIndex(
            model_name='lockedfield',
            index=models.Index(fields=['shell_file'], name='idx_locked_fields_shell'),
        ),
        migrations.AddIndex(
            model_name='lockedfield',
            index=models.Index(fields=['decision'], name='idx_locked_fields_decision'),
        ),
        migrations.AddConstraint(
            model_name='lockedfield',
            constraint=models.UniqueConstraint(fields=('entity_id', 'field'), name='idx_locked_fields_once'),
        ),
        migrations.RunPython(set_on_delete_rules, migrations.RunPython.noop),
        migrations.RunSQL(_review_guard.CREATE, _review_guard.DROP),
    ]
