"""A reading that overlaps the words of a decision is flagged, not only a reading of equal words."""

from __future__ import annotations

from django.db import migrations

from pipeline.migrations import _review_guard


class Migration(migrations.Migration):
    """Replace the function that meets a found entity."""

    dependencies = (("pipeline", "0001_initial"),)

    operations = (migrations.RunSQL(_review_guard.FOUND_ENTITY, migrations.RunSQL.noop),)
