"""Carry every ON DELETE rule into the database."""

from __future__ import annotations

from django.db import migrations

from pipeline.migrations._on_delete import carry


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0001_tables")]

    operations = [migrations.RunPython(carry, migrations.RunPython.noop)]
