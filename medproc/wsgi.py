"""The WSGI application.

It refuses to start with a wrong environment and names each wrong variable.
"""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from medproc import startup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
startup.refuse_wrong_environment(startup.WEB_SERVER_GIVES_UP)
application = get_wsgi_application()
