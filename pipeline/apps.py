"""The pipeline's Django application; its start also registers the project's system checks."""

from __future__ import annotations

from django.apps import AppConfig


class PipelineConfig(AppConfig):
    """Processes records and keeps their durable state; knows nothing of the console."""

    name = "pipeline"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Pipeline"

    def ready(self) -> None:
        """Register the system checks of the environment and the queues; start the tracker."""
        from medproc import checks  # noqa: F401 - imported for its registrations
        from medproc.telemetry import errors

        errors.start()
