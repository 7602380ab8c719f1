"""Create the tables of webhooks, two scopes of tokens, and the triggers that note the events."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from api.migrations import _webhook_events

class Migration(migrations.Migration):

    dependencies = [
        ('api', '0001_initial'),
        ('pipeline', '0003_metric_counts'),
    ]

    operations = [
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('event_id', models.UUIDField()),
                ('event_type', models.TextField(choices=[('record.completed', 'Record Completed'), ('record.failed', 'Record Failed'), ('record.dead', 'Record Dead'), ('record.cancelled', 'Record Cancelled'), ('review.closed', 'Review Closed'), ('incident.opened', 'Incident Opened'), ('incident.closed', 'Incident Closed'), ('ping', 'Ping')])),
                ('subject_id', models.UUIDField()),
                ('subject_status', models.TextField()),
                ('subject_code', models.TextField(blank=True, null=True)),
                ('occurred_at', models.DateTimeField()),
                ('status', models.TextField(choices=[('pending', 'Pending'), ('succeeded', 'Succeeded'), ('failed', 'Failed')], db_default='pending', default='pending', editable=False)),
                ('attempts', models.IntegerField(db_default=0, default=0)),
                ('retry_no', models.IntegerField(db_default=0, default=0)),
                ('next_attempt_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('response_status', models.SmallIntegerField(blank=True, null=True)),
                ('failure', models.TextField(blank=True, choices=[('ADDRESS_REFUSED', 'Address Refused'), ('NAME_UNKNOWN', 'Name Unknown'), ('CONNECTION_FAILED', 'Connection Failed'), ('TLS_FAILED', 'Tls Failed'), ('TIMEOUT', 'Timeout'), ('RESPONSE_INVALID', 'Response Invalid'), ('STATUS_REFUSED', 'Status Refused')], null=True)),
                ('duration_ms', models.IntegerField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'webhook delivery',
                'verbose_name_plural': 'webhook deliveries',
                'db_table': 'api_webhook_deliveries',
                'db_table_comment': 'One row per event and endpoint: the outbox of the webhooks, and their log. Ids, codes and times only. No PHI.',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='WebhookEndpoint',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('url', models.TextField()),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(choices=[('record.completed', 'record.completed'), ('record.failed', 'record.failed'), ('record.dead', 'record.dead'), ('record.cancelled', 'record.cancelled'), ('review.closed', 'review.closed'), ('incident.opened', 'incident.opened'), ('incident.closed', 'incident.closed')]), size=None)),
                ('seed', models.CharField(max_length=32)),
                ('secret_digest', models.CharField(max_length=64)),
                ('previous_seed', models.CharField(blank=True, db_default='', default='', max_length=32)),
                ('rotated_at', models.DateTimeField(blank=True, null=True)),
                ('failing_since', models.DateTimeField(blank=True, null=True)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('disabled_reason', models.TextField(blank=True, choices=[('gone', 'Gone'), ('failing', 'Failing'), ('secret_changed', 'secret changed')], null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'webhook',
                'db_table': 'api_webhook_endpoints',
                'db_table_comment': 'Addresses of API clients to which events are posted. Holds no secret: seeds and digests. No PHI.',
                'default_permissions': (),
            },
        ),
        migrations.RemoveConstraint(
            model_name='apitoken',
            name='api_tokens_scopes_check',
        ),
        migrations.AlterField(
            model_name='apitoken',
            name='scopes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(choices=[('records:write', 'records:write'), ('records:read', 'records:read'), ('records:act', 'records:act'), ('results:read', 'results:read'), ('reviews:read', 'reviews:read'), ('incidents:read', 'incidents:read'), ('webhooks:manage', 'webhooks:manage')]), size=None),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.CheckConstraint(condition=models.Q(('scopes__len__gt', 0), ('scopes__contained_by', ['records:write', 'records:read', 'records:act', 'results:read', 'reviews:read', 'incidents:read', 'webhooks:manage'])), name='api_tokens_scopes_check'),
        ),
        migrations.AddField(
            model_name='webhookendpoint',
            name='client',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='api.apiclient'),
        ),
        migrations.AddField(
            model_name='webhookdelivery',
            name='endpoint',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='api.webhookendpoint'),
        ),
        migrations.AddConstraint(
            model_name='webhookendpoint',
            constraint=models.UniqueConstraint(fields=('client', 'url'), name='idx_api_webhook_endpoints_once'),
        ),
        migrations.AddConstraint(
            model_name='webhookendpoint',
            constraint=models.CheckConstraint(condition=models.Q(('events__len__gt', 0), ('events__contained_by', ['record.completed', 'record.failed', 'record.dead', 'record.cancelled', 'review.closed', 'incident.opened', 'incident.closed'])), name='api_webhook_endpoints_events_check'),
        ),
        migrations.AddConstraint(
            model_name='webhookendpoint',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('disabled_at__isnull', True), ('disabled_reason__isnull', True)), models.Q(('disabled_at__isnull', False), ('disabled_reason__in', ['gone', 'failing', 'secret_changed'])), _connector='OR'), name='api_webhook_endpoints_disabled_check'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['endpoint', 'next_attempt_at'], name='idx_api_webhook_due'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['endpoint', '-created_at', '-id'], name='idx_api_webhook_of_endpoint'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['subject_id'], name='idx_api_webhook_subject'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['-created_at', '-id'], name='idx_api_webhook_recent'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.UniqueConstraint(fields=('endpoint', 'event_id'), name='idx_api_webhook_deliveries_once'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'succeeded', 'failed'])), name='api_webhook_deliveries_status_check'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(('event_type__in', ['record.completed', 'record.failed', 'record.dead', 'record.cancelled', 'review.closed', 'incident.opened', 'incident.closed', 'ping'])), name='api_webhook_deliveries_event_check'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(('failure__in', ['ADDRESS_REFUSED', 'NAME_UNKNOWN', 'CONNECTION_FAILED', 'TLS_FAILED', 'TIMEOUT', 'RESPONSE_INVALID', 'STATUS_REFUSED'])), name='api_webhook_deliveries_failure_check'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('status', 'pending')), models.Q(('finished_at__isnull', False), ('status__in', ['succeeded', 'failed'])), _connector='OR'), name='api_webhook_deliveries_finished_check'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('attempts__gte', 0), ('attempts__isnull', True), _connector='OR'), models.Q(('retry_no__gte', 0), ('retry_no__isnull', True), _connector='OR'), models.Q(('duration_ms__gte', 0), ('duration_ms__isnull', True), _connector='OR')), name='api_webhook_deliveries_counts_check'),
        ),
        migrations.RunSQL(_webhook_events.CREATE, _webhook_events.DROP),
    ]
