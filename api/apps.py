"""The Django application of the HTTP API, above pipeline and console."""

from __future__ import annotations

from django.apps import AppConfig


class HttpApiConfig(AppConfig):
    """Lets programs submit records and read their results."""

    name = "api"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "HTTP API"
