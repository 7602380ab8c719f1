"""The URLs of the project: the admin with the console. The pages of django-rq are not mounted."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

handler500 = "observability.middleware.server_error"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
]
