"""The WSGI application.

It refuses to start with a wrong environment and names each wrong variable.
"""

from __future__ import annotations

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
if settings.ENVIRONMENT_PROBLEMS:
    raise ImproperlyConfigured(
        " ".join(f"({found.id}) {found.message}" for found in settings.ENVIRONMENT_PROBLEMS)
    )
application = get_wsgi_application()
