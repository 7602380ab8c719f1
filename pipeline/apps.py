"""The pipeline's Django application. Imports nothing of the project at module level."""

from __future__ import annotations

from django.apps import AppConfig


class PipelineConfig(AppConfig):
    """Processes records and keeps their durable state; knows nothing of the console."""

    name = "pipeline"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Pipeline"
