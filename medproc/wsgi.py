"""The WSGI application: the console's process, which alone has a connection pool.

It refuses to start with a wrong environment and names each wrong variable.
"""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application
from django.urls import resolve

from medproc import db_pool, startup
from pipeline.documents import scratch

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
startup.refuse_wrong_environment(startup.WEB_SERVER_GIVES_UP)
db_pool.use_web_pool()
application = get_wsgi_application()
# A killed process of the web server leaves its copies. The next process deletes them.
scratch.delete_abandoned_copies()
# Imports all views now, and not while the first user waits.
resolve("/admin/")
