"""Add what the reuse of results needs: owners, kept replies, reuses, flights and review items."""

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from pipeline.migrations._on_delete import set_on_delete_rules


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0003_code_search'),
    ]

    operations = [
        # Rows of earlier versions have no kept replies, so no record could reuse anything.
        migrations.RunSQL("DELETE FROM processed_documents", migrations.RunSQL.noop),
        migrations.CreateModel(
            name='ExtractionFlight',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('owner', models.TextField()),
                ('document_hash', models.CharField(max_length=64)),
                ('renewed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name': 'extraction in progress',
                'verbose_name_plural': 'extractions in progress',
                'db_table': 'extraction_flights',
                'db_table_comment': 'The job that extracts a file of an owner now (single flight).',
            },
        ),
        migrations.CreateModel(
            name='KeptReply',
            fields=[
                ('work_item_id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('step', models.TextField(choices=[('pages', 'Pages'), ('pass05', 'Pass05'), ('pass1', 'Pass1'), ('pass1_5', 'Pass1 5'), ('pass2', 'Pass2'), ('pass3', 'Pass3')])),
                ('lookup', models.CharField(max_length=64)),
                ('model_version', models.TextField(blank=True, null=True)),
                ('reply', models.BinaryField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'kept reply',
                'verbose_name_plural': 'kept replies',
                'db_table': 'kept_replies',
                'db_table_comment': 'Accepted replies that later records can reuse, zlib-compressed. PHI.',
            },
        ),
        migrations.CreateModel(
            name='Reuse',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('step', models.TextField(choices=[('pages', 'Pages'), ('pass05', 'Pass05'), ('pass1', 'Pass1'), ('pass1_5', 'Pass1 5'), ('pass2', 'Pass2'), ('pass3', 'Pass3')])),
                ('items', models.IntegerField(db_default=0, default=0)),
                ('calls_saved', models.IntegerField(db_default=0, default=0)),
                ('tokens_saved', models.BigIntegerField(db_default=0, default=0)),
                ('cost_saved_usd', models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=12)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'reuse',
                'verbose_name_plural': 'reuses',
                'db_table': 'record_reuses',
                'db_table_comment': 'What each pass of a record reused, and what the reuse saved.',
            },
        ),
        migrations.CreateModel(
            name='ReviewItem',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('reason', models.TextField(choices=[('flagged', 'Flagged'), ('completed', 'Completed')])),
                ('status', models.TextField(choices=[('open', 'Open'), ('closed', 'Closed')], db_default='open', default='open', editable=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'review item',
                'verbose_name_plural': 'review items',
                'db_table': 'review_items',
                'db_table_comment': 'One review for each completed record, reused results or not.',
            },
        ),
        migrations.AlterModelTableComment(
            name='processeddocument',
            table_comment='The conditions of each completed pass of a record (requirement 39).',
        ),
        migrations.RemoveConstraint(
            model_name='processeddocument',
            name='idx_processed_documents_key',
        ),
        migrations.AddField(
            model_name='processeddocument',
            name='plan',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.AddField(
            model_name='processeddocument',
            name='step',
            field=models.TextField(choices=[('pages', 'Pages'), ('pass05', 'Pass05'), ('pass1', 'Pass1'), ('pass1_5', 'Pass1 5'), ('pass2', 'Pass2'), ('pass3', 'Pass3')], default='pass1'),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='shellfile',
            name='forced',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='shellfile',
            name='owner',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='processeddocument',
            name='shell_file',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.shellfile'),
        ),
        migrations.AddIndex(
            model_name='processeddocument',
            index=models.Index(fields=['document_hash', 'owner', 'step'], name='idx_processed_documents_key'),
        ),
        migrations.AddConstraint(
            model_name='processeddocument',
            constraint=models.UniqueConstraint(fields=('shell_file', 'step'), name='idx_processed_documents_once'),
        ),
        migrations.AddConstraint(
            model_name='processeddocument',
            constraint=models.CheckConstraint(condition=models.Q(('step__in', ['pages', 'pass05', 'pass1', 'pass1_5', 'pass2', 'pass3'])), name='processed_documents_step_check'),
        ),
        migrations.AddField(
            model_name='extractionflight',
            name='job',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.job'),
        ),
        migrations.AddField(
            model_name='keptreply',
            name='shell_file',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.shellfile'),
        ),
        migrations.AddField(
            model_name='reuse',
            name='shell_file',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='reuses', to='pipeline.shellfile'),
        ),
        migrations.AddField(
            model_name='reuse',
            name='source',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='reused_by', to='pipeline.shellfile'),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='shell_file',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='review_item', to='pipeline.shellfile'),
        ),
        migrations.AddConstraint(
            model_name='extractionflight',
            constraint=models.UniqueConstraint(fields=('owner', 'document_hash'), name='idx_extraction_flights_key'),
        ),
        migrations.AddIndex(
            model_name='keptreply',
            index=models.Index(fields=['lookup', '-created_at'], name='idx_kept_replies_lookup'),
        ),
        migrations.AddIndex(
            model_name='keptreply',
            index=models.Index(fields=['shell_file', 'step'], name='idx_kept_replies_record'),
        ),
        migrations.AddIndex(
            model_name='keptreply',
            index=models.Index(fields=['-created_at', '-work_item_id'], name='idx_kept_replies_newest'),
        ),
        migrations.AddConstraint(
            model_name='keptreply',
            constraint=models.CheckConstraint(condition=models.Q(('step__in', ['pages', 'pass05', 'pass1', 'pass1_5', 'pass2', 'pass3'])), name='kept_replies_step_check'),
        ),
        migrations.AddIndex(
            model_name='reuse',
            index=models.Index(fields=['-created_at', '-id'], name='idx_record_reuses_newest'),
        ),
        migrations.AddConstraint(
            model_name='reuse',
            constraint=models.UniqueConstraint(fields=('shell_file', 'step', 'source'), name='idx_record_reuses_once'),
        ),
        migrations.AddConstraint(
            model_name='reuse',
            constraint=models.CheckConstraint(condition=models.Q(('step__in', ['pages', 'pass05', 'pass1', 'pass1_5', 'pass2', 'pass3'])), name='record_reuses_step_check'),
        ),
        migrations.AddConstraint(
            model_name='reuse',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('items__gte', 0), ('items__isnull', True), _connector='OR'), models.Q(('calls_saved__gte', 0), ('calls_saved__isnull', True), _connector='OR'), models.Q(('tokens_saved__gte', 0), ('tokens_saved__isnull', True), _connector='OR'), models.Q(('cost_saved_usd__gte', 0), ('cost_saved_usd__isnull', True), _connector='OR')), name='record_reuses_counts_check'),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(fields=['-created_at', '-id'], name='idx_review_items_newest'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['open', 'closed'])), name='review_items_status_check'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['flagged', 'completed'])), name='review_items_reason_check'),
        ),
        migrations.RunPython(set_on_delete_rules, migrations.RunPython.noop),
    ]
