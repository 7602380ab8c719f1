"""Name the results of an audit row, so that its list offers them without reading the table."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("observability", "0006_indexes_of_the_tables")]

    operations = [
        migrations.AlterField(
            model_name="auditevent",
            name="result",
            field=models.TextField(
                choices=[("done", "done"), ("refused", "refused"), ("failed", "failed")],
                db_default="done",
                default="done",
            ),
        ),
    ]
