"""Add the index of the code search, and the extension that the index needs."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import pgvector.django.halfvec
import pgvector.django.sparsevec
from django.db import migrations, models

from pipeline.migrations._on_delete import set_on_delete_rules
from pipeline.migrations._pgvector import create_vector


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0002_clinical_results'),
    ]

    operations = [
        migrations.RunPython(create_vector, migrations.RunPython.noop),
        migrations.CreateModel(
            name='CodeEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('lexemes', django.contrib.postgres.search.SearchVectorField()),
                ('dimensions', pgvector.django.sparsevec.SparseVectorField(dimensions=999999937)),
                ('words', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('weights', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), size=None)),
                ('weight', models.FloatField()),
                ('codes', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('facets', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('system', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.codesystem')),
            ],
            options={
                'db_table': 'code_search_entries',
                'db_table_comment': 'Index of the code search: terms without facets, with their codes.',
                'indexes': [django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=['lexemes'], name='idx_code_entries_lexemes')],
            },
        ),
        migrations.CreateModel(
            name='CodeWord',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('word', models.TextField()),
                ('lexeme', models.TextField()),
                ('entry_count', models.IntegerField()),
                ('length', models.SmallIntegerField()),
                ('grams', pgvector.django.halfvec.HalfVectorField(dimensions=128)),
                ('system', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.codesystem')),
            ],
            options={
                'db_table': 'code_search_words',
                'db_table_comment': 'Words of the code search, with their character n-grams.',
                'indexes': [models.Index(fields=['system', 'lexeme'], name='idx_code_words_lexeme'), models.Index(fields=['system', 'length'], name='idx_code_words_length')],
            },
        ),
        migrations.RunPython(set_on_delete_rules, migrations.RunPython.noop),
    ]
