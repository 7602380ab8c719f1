"""The console's Django application. May import the pipeline; the pipeline never imports it."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ObservabilityConfig(AppConfig):
    """Reads the pipeline's state, explains it, and offers the operator's verbs."""

    name = "observability"
    default = True
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Observability"

    def ready(self) -> None:
        """Listen to what changes users and groups."""
        from observability.audit import signals  # noqa: F401 - its receivers connect at import


class ConsoleAdminConfig(admin.AdminConfig):
    """Django's admin with the console's pages in it."""

    default = False
    default_site = "observability.site.ConsoleSite"
