"""Carry the ON DELETE rule of a job's record batch into the database."""

from __future__ import annotations

from django.db import migrations

from pipeline.migrations._on_delete import carry


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0007_record_batches")]

    operations = [migrations.RunPython(carry, migrations.RunPython.noop)]
