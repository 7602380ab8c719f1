"""Carry the ON DELETE rules of incidents and pauses into the database."""

from __future__ import annotations

from django.db import migrations

from pipeline.migrations._on_delete import carry


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0004_incidents_and_pauses")]

    operations = [migrations.RunPython(carry, migrations.RunPython.noop)]
