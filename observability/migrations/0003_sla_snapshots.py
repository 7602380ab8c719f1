"""Create the table of the hourly snapshots of the service level."""

import django.contrib.postgres.functions
import django.db.models.expressions
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('observability', '0002_federated_identities'),
    ]

    operations = [
        migrations.CreateModel(
            name='SlaSnapshot',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField()),
                ('priority', models.TextField(choices=[('urgent', 'urgent'), ('normal', 'normal'), ('low', 'low')])),
                ('target_s', models.FloatField()),
                ('finished', models.IntegerField(db_default=0, default=0)),
                ('met', models.IntegerField(db_default=0, default=0)),
                ('missed', models.IntegerField(db_default=0, default=0)),
                ('median_s', models.FloatField(blank=True, null=True)),
                ('p95_s', models.FloatField(blank=True, null=True)),
                ('backlog', models.IntegerField(db_default=0, default=0)),
                ('late', models.IntegerField(db_default=0, default=0)),
                ('backlog_ends_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'hour of the service level',
                'verbose_name_plural': 'hours of the service level',
                'db_table': 'sla_snapshots',
                'db_table_comment': 'The service level by hour and priority: counts, seconds and a forecast. No PHI.',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('hour', 'priority'), name='idx_sla_snapshots_once'), models.CheckConstraint(condition=models.Q(('priority__in', ['urgent', 'normal', 'low'])), name='sla_snapshots_priority_check'), models.CheckConstraint(condition=models.Q(('backlog__gte', models.F('late')), ('finished', django.db.models.expressions.CombinedExpression(models.F('met'), '+', models.F('missed'))), ('late__gte', 0), ('met__gte', 0), ('missed__gte', 0)), name='sla_snapshots_counts_check')],
            },
        ),
    ]
