from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0009_review_and_locked_fields'),
    ]

    operations = [
        migrations.AddField(
            model_name='page',
            name='suspects',
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
