"""Keep the term of a candidate code that fits the text best."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0005_rejected_attributes_of_a_zone'),
    ]

    operations = [
        migrations.AddField(
            model_name='codecandidate',
            name='term',
            field=models.TextField(db_default='', default=''),
        ),
    ]
