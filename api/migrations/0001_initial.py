"""Create the tables of the HTTP API: clients, tokens and idempotency keys."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiClient',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.TextField(unique=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('created_by', models.TextField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='api_client', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'API client',
                'db_table': 'api_clients',
                'db_table_comment': 'Programs that use the HTTP API, each with a user of its own. No PHI.',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('prefix', models.TextField(unique=True)),
                ('digest', models.CharField(max_length=64)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(choices=[('records:write', 'records:write'), ('records:read', 'records:read'), ('records:act', 'records:act'), ('results:read', 'results:read'), ('reviews:read', 'reviews:read')]), size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('created_by', models.TextField()),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_by', models.TextField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='api.apiclient')),
            ],
            options={
                'verbose_name': 'API token',
                'db_table': 'api_tokens',
                'db_table_comment': 'Tokens of API clients: public prefix, digest, scopes. No PHI.',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('key_digest', models.CharField(max_length=64)),
                ('fingerprint', models.CharField(max_length=64)),
                ('http_status', models.SmallIntegerField(blank=True, null=True)),
                ('response_body', models.JSONField(db_default={}, default=dict)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('client', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='idempotency_keys', to='api.apiclient')),
            ],
            options={
                'verbose_name': 'idempotency key',
                'db_table': 'api_idempotency_keys',
                'db_table_comment': 'Requests of API clients by idempotency key, with their answers. No PHI.',
                'default_permissions': (),
            },
        ),
        migrations.AddConstraint(
            model_name='apiclient',
            constraint=models.CheckConstraint(condition=models.Q(('name__regex', '^[a-z0-9][a-z0-9-]{0,39}$')), name='api_clients_name_check'),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.CheckConstraint(condition=models.Q(('scopes__len__gt', 0), ('scopes__contained_by', ['records:write', 'records:read', 'records:act', 'results:read', 'reviews:read'])), name='api_tokens_scopes_check'),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.CheckConstraint(condition=models.Q(('digest__regex', '^[0-9a-f]{64}$')), name='api_tokens_digest_check'),
        ),
        migrations.AddIndex(
            model_name='idempotencykey',
            index=models.Index(fields=['-created_at', '-id'], name='idx_api_idempotency_recent'),
        ),
        migrations.AddConstraint(
            model_name='idempotencykey',
            constraint=models.UniqueConstraint(fields=('client', 'key_digest'), name='idx_api_idempotency_keys_once'),
        ),
    ]
