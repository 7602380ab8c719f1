"""The console's Django application. The console imports the pipeline, never the reverse."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ObservabilityConfig(AppConfig):
    """Shows and explains the state of the pipeline, and offers the operator's actions."""

    name = "observability"
    default = True
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Observability"

    def ready(self) -> None:
        """Connect the signals that audit changes of users and date log-ins; register the checks."""
        # Each module registers its functions at import.
        from observability.audit import checks, signals  # noqa: F401 - the import registers them
        from observability.entry import sessions  # noqa: F401 - the import registers it


class ConsoleAdminConfig(admin.AdminConfig):
    """Django's admin with the console's pages."""

    default = False
    default_site = "observability.site.ConsoleSite"
