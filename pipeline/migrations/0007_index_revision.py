"""Add the revision of the search index: 0 is an index that start-up must fill."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0006_matched_terms'),
    ]

    operations = [
        migrations.AddField(
            model_name='codesystem',
            name='index_revision',
            field=models.IntegerField(db_default=0, default=0),
        ),
    ]
