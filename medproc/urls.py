"""The URLs of the project: the admin with the console, and the HTTP API.

The pages of django-rq are not mounted.
"""

from __future__ import annotations

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from api.middleware import refused_route
from api.v1 import api

handler500 = "observability.entry.refusals.server_error"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    # An unknown address has its words as an argument, so that the log shows the route alone.
    path("api/", refused_route, name="api_root"),
    path("api/<path:rest>", refused_route, name="api_unknown"),
]
