"""Add the vectors of the optional embedder, and the search that made a list of candidates."""

import django.db.models.functions.datetime
import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0007_index_revision'),
    ]

    operations = [
        migrations.AddField(
            model_name='codecandidate',
            name='search_version',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.CreateModel(
            name='CodeVector',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('model', models.TextField()),
                ('digest', models.CharField(max_length=64)),
                ('vector', pgvector.django.halfvec.HalfVectorField(dimensions=768)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'verbose_name': 'vector',
                'verbose_name_plural': 'vectors',
                'db_table': 'code_search_vectors',
                'db_table_comment': 'Vectors of texts by the digest of the text (optional embedder). PHI.',
                'constraints': [models.UniqueConstraint(fields=('model', 'digest'), name='idx_code_vectors_text')],
            },
        ),
    ]
