"""Index the owner of records, for the list of an API client's own records."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0001_initial'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='shellfile',
            index=models.Index(fields=['owner', '-created_at', '-id'], name='idx_shell_files_owner'),
        ),
    ]
