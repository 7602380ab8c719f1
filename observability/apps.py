"""The console's Django application. May import the pipeline; the pipeline never imports it."""

from __future__ import annotations

from django.apps import AppConfig


class ObservabilityConfig(AppConfig):
    """Reads the pipeline's state, explains it, and offers the operator's verbs."""

    name = "observability"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Observability"
