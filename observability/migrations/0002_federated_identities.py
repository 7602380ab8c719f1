"""Create the table of users who log in through an identity provider, by issuer and subject."""

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('observability', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='FederatedIdentity',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('issuer', models.TextField()),
                ('subject', models.TextField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='federated_identity', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'federated identity',
                'verbose_name_plural': 'federated identities',
                'db_table': 'federated_identities',
                'db_table_comment': 'Users who log in through the identity provider: issuer and subject. No PHI.',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='federated_identities_one_user')],
            },
        ),
    ]
