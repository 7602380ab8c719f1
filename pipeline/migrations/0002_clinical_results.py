"""Add code systems, candidates, enriched entities, record lists and narratives."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from pipeline.migrations._on_delete import set_on_delete_rules


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='clinicalmetrics',
            name='entities_coded',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='clinicalmetrics',
            name='entities_flagged',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='narrativemetrics',
            name='sentences_supported',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='narrativemetrics',
            name='sentences_unsupported',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='zoneresult',
            name='entity_ids',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), db_default=[], default=list, size=None),
        ),
        migrations.AddField(
            model_name='zoneresult',
            name='estimated_input_tokens',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='zoneresult',
            name='spans',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.CreateModel(
            name='CodeSystem',
            fields=[
                ('key', models.TextField(choices=[('ICD10CM', 'ICD-10-CM'), ('UNII', 'FDA UNII'), ('LOINC', 'LOINC'), ('RXNORM', 'RxNorm'), ('SNOMEDCT', 'SNOMED CT'), ('CVX', 'CVX')], primary_key=True, serialize=False)),
                ('version', models.TextField()),
                ('source', models.TextField()),
                ('licence', models.TextField()),
                ('digest', models.CharField(max_length=64)),
                ('code_count', models.IntegerField(db_default=0, default=0)),
                ('term_count', models.IntegerField(db_default=0, default=0)),
                ('loaded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name': 'code system',
                'verbose_name_plural': 'code systems',
                'db_table': 'code_systems',
                'db_table_comment': 'Loaded code systems with version, source and licence.',
                'constraints': [models.CheckConstraint(condition=models.Q(('key__in', ['ICD10CM', 'UNII', 'LOINC', 'RXNORM', 'SNOMEDCT', 'CVX'])), name='code_systems_key_check')],
            },
        ),
        migrations.CreateModel(
            name='Code',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('code', models.TextField()),
                ('display', models.TextField()),
                ('parent', models.TextField(blank=True, null=True)),
                ('billable', models.BooleanField(blank=True, null=True)),
                ('kind', models.TextField(db_default='', default='')),
                ('properties', models.JSONField(db_default={}, default=dict)),
                ('system', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='codes', to='pipeline.codesystem')),
            ],
            options={
                'db_table': 'codes',
                'db_table_comment': 'Codes of the loaded code systems.',
            },
        ),
        migrations.CreateModel(
            name='CodeTerm',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('text', models.TextField()),
                ('kind', models.TextField(db_default='display', default='display')),
                ('code', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='terms', to='pipeline.code')),
            ],
            options={
                'db_table': 'code_terms',
                'db_table_comment': 'Terms of codes, as the search finds them.',
            },
        ),
        migrations.CreateModel(
            name='EnrichedEntity',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('category', models.TextField()),
                ('attributes', models.JSONField()),
                ('code_system', models.TextField(blank=True, null=True)),
                ('code', models.TextField(blank=True, null=True)),
                ('code_display', models.TextField(blank=True, null=True)),
                ('flags', models.JSONField(db_default=[], default=list)),
                ('second_reading', models.JSONField(blank=True, null=True)),
                ('engine', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('entity', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='enriched', to='pipeline.entity')),
                ('healthcare_encounter', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='enriched_entities', to='pipeline.encounter')),
                ('patient', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='pipeline.patient')),
                ('shell_file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='enriched_entities', to='pipeline.shellfile')),
                ('zone_result', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.zoneresult')),
            ],
            options={
                'verbose_name': 'enriched entity',
                'verbose_name_plural': 'enriched entities',
                'db_table': 'pass2_enriched_entities',
                'db_table_comment': 'Structured attributes and code of each entity (Pass 2). PHI.',
            },
        ),
        migrations.CreateModel(
            name='NarrativeResult',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('page_range_start', models.IntegerField()),
                ('page_range_end', models.IntegerField()),
                ('status', models.TextField(choices=[('pending', 'Pending'), ('processing', 'Processing'), ('succeeded', 'Succeeded'), ('failed', 'Failed')], db_default='pending', default='pending', editable=False)),
                ('attempt_count', models.IntegerField(db_default=0, default=0)),
                ('max_attempts', models.IntegerField(db_default=3, default=3)),
                ('rate_limit_waits', models.IntegerField(db_default=0, default=0)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('duration_ms', models.IntegerField(blank=True, null=True)),
                ('ai_model_used', models.TextField(blank=True, null=True)),
                ('input_tokens', models.IntegerField(blank=True, null=True)),
                ('output_tokens', models.IntegerField(blank=True, null=True)),
                ('error_code', models.TextField(blank=True, null=True)),
                ('error_message', models.TextField(blank=True, null=True)),
                ('error_context', models.JSONField(blank=True, null=True)),
                ('had_transient_failure', models.BooleanField(db_default=False, default=False)),
                ('transient_error_history', models.JSONField(blank=True, null=True)),
                ('output', models.JSONField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('narrative_index', models.IntegerField()),
                ('entity_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), db_default=[], default=list, size=None)),
                ('estimated_input_tokens', models.IntegerField(db_default=0, default=0)),
                ('sentences_supported', models.IntegerField(blank=True, null=True)),
                ('sentences_unsupported', models.IntegerField(blank=True, null=True)),
                ('healthcare_encounter', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='narratives', to='pipeline.encounter')),
                ('processing_session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='narratives', to='pipeline.session')),
            ],
            options={
                'verbose_name': 'narrative',
                'verbose_name_plural': 'narratives',
                'db_table': 'pass3_narrative_results',
                'db_table_comment': 'Per-narrative results of Pass 3: attempts, tokens, errors.',
            },
        ),
        migrations.CreateModel(
            name='NarrativeSentence',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('sentence_index', models.IntegerField()),
                ('text', models.TextField()),
                ('entity_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ('supported', models.BooleanField(db_default=False, default=False)),
                ('reasons', models.JSONField(db_default=[], default=list)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('healthcare_encounter', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.encounter')),
                ('narrative', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sentences', to='pipeline.narrativeresult')),
                ('shell_file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='narrative_sentences', to='pipeline.shellfile')),
            ],
            options={
                'verbose_name': 'sentence',
                'verbose_name_plural': 'sentences',
                'db_table': 'pass3_narrative_sentences',
                'db_table_comment': 'Sentences of the narratives (Pass 3), each with its entities. PHI.',
            },
        ),
        migrations.CreateModel(
            name='RecordListItem',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.TextField(choices=[('problem', 'Problem'), ('medication', 'Medication'), ('allergy', 'Allergy'), ('lab_series', 'Lab Series')])),
                ('item_index', models.IntegerField()),
                ('name', models.TextField()),
                ('code_system', models.TextField(blank=True, null=True)),
                ('code', models.TextField(blank=True, null=True)),
                ('summary', models.JSONField()),
                ('entity_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ('encounter_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ('contradictions', models.JSONField(db_default=[], default=list)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('patient', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='pipeline.patient')),
                ('shell_file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='list_items', to='pipeline.shellfile')),
            ],
            options={
                'verbose_name': 'list entry',
                'verbose_name_plural': 'list entries',
                'db_table': 'record_list_items',
                'db_table_comment': 'Problems, medications, allergies and lab series of a record. PHI.',
            },
        ),
        migrations.CreateModel(
            name='CodeCandidate',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('rank', models.IntegerField()),
                ('system', models.TextField(choices=[('ICD10CM', 'ICD-10-CM'), ('UNII', 'FDA UNII'), ('LOINC', 'LOINC'), ('RXNORM', 'RxNorm'), ('SNOMEDCT', 'SNOMED CT'), ('CVX', 'CVX')])),
                ('system_version', models.TextField()),
                ('code', models.TextField()),
                ('display', models.TextField()),
                ('score', models.FloatField()),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('entity', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='candidates', to='pipeline.entity')),
                ('healthcare_encounter', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.encounter')),
                ('shell_file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.shellfile')),
            ],
            options={
                'verbose_name': 'candidate code',
                'verbose_name_plural': 'candidate codes',
                'db_table': 'pass1_5_code_candidates',
                'db_table_comment': 'Ranked candidate codes of each entity (Pass 1.5).',
                'indexes': [models.Index(fields=['shell_file'], name='idx_pass1_5_candidate_shell'), models.Index(fields=['healthcare_encounter'], name='idx_pass1_5_candidate_enc')],
                'constraints': [models.UniqueConstraint(fields=('entity', 'rank'), name='idx_pass1_5_candidate_unique'), models.CheckConstraint(condition=models.Q(('system__in', ['ICD10CM', 'UNII', 'LOINC', 'RXNORM', 'SNOMEDCT', 'CVX'])), name='pass1_5_candidate_system_check'), models.CheckConstraint(condition=models.Q(('rank__gte', 1), ('score__gte', 0), ('score__lte', 1)), name='pass1_5_candidate_check')],
            },
        ),
        migrations.AddConstraint(
            model_name='code',
            constraint=models.UniqueConstraint(fields=('system', 'code'), name='idx_codes_unique'),
        ),
        migrations.AddIndex(
            model_name='enrichedentity',
            index=models.Index(fields=['shell_file'], name='idx_pass2_enriched_shell'),
        ),
        migrations.AddIndex(
            model_name='enrichedentity',
            index=models.Index(fields=['healthcare_encounter'], name='idx_pass2_enriched_encounter'),
        ),
        migrations.AddConstraint(
            model_name='enrichedentity',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('code__isnull', True), ('code_system__isnull', True)), models.Q(('code__isnull', False), ('code_system__isnull', False)), _connector='OR'), name='pass2_enriched_code_check'),
        ),
        migrations.AddIndex(
            model_name='narrativeresult',
            index=models.Index(condition=models.Q(('status', 'processing')), fields=['started_at'], name='idx_pass3_narrative_stale'),
        ),
        migrations.AddIndex(
            model_name='narrativeresult',
            index=models.Index(fields=['healthcare_encounter'], name='idx_pass3_narrative_encounter'),
        ),
        migrations.AddConstraint(
            model_name='narrativeresult',
            constraint=models.UniqueConstraint(fields=('processing_session', 'narrative_index'), name='idx_pass3_narrative_unique'),
        ),
        migrations.AddConstraint(
            model_name='narrativeresult',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'processing', 'succeeded', 'failed'])), name='pass3_narrative_status_check'),
        ),
        migrations.AddConstraint(
            model_name='narrativeresult',
            constraint=models.CheckConstraint(condition=models.Q(('page_range_end__gte', models.F('page_range_start')), ('page_range_start__gte', 1)), name='pass3_narrative_pages_check'),
        ),
        migrations.AddIndex(
            model_name='narrativesentence',
            index=models.Index(fields=['shell_file'], name='idx_pass3_sentence_shell'),
        ),
        migrations.AddConstraint(
            model_name='narrativesentence',
            constraint=models.UniqueConstraint(fields=('narrative', 'sentence_index'), name='idx_pass3_sentence_unique'),
        ),
        migrations.AddConstraint(
            model_name='narrativesentence',
            constraint=models.CheckConstraint(condition=models.Q(('supported', False), models.Q(('entity_ids', []), _negated=True), _connector='OR'), name='pass3_sentence_cites_check'),
        ),
        migrations.AddConstraint(
            model_name='recordlistitem',
            constraint=models.UniqueConstraint(fields=('shell_file', 'kind', 'item_index'), name='idx_record_list_unique'),
        ),
        migrations.AddConstraint(
            model_name='recordlistitem',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['problem', 'medication', 'allergy', 'lab_series'])), name='record_list_kind_check'),
        ),
        migrations.RunPython(set_on_delete_rules, migrations.RunPython.noop),
    ]
