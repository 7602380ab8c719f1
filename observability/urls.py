"""The URLs of the console, mounted in the admin through its `admin_view`.

All names are in the admin's namespace: `admin:overview`, `admin:record`, …
"""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.urls import URLPattern, path, re_path

from observability.views import (
    audit,
    bulk_actions,
    bulk_history,
    compare,
    exports,
    failures,
    holds,
    incidents,
    overview,
    phi,
    record,
    records,
    review,
    review_learning,
    reviews,
    search,
    stale_work,
    upload,
)


def console_urls(site: AdminSite) -> list[URLPattern]:
    """Return the console's pages, each behind the site's log-in."""
    pages = [
        path("overview/", overview.overview, name="overview"),
        path("search/", search.search, name="search"),
        path("records/", records.records, name="records"),
        re_path(
            r"^records/(?P<digits>[0-9a-fA-F-]{6,35})/$", search.short, name="record_by_digits"
        ),
        path("records/<uuid:record_id>/", record.record, name="record"),
        path("records/<uuid:record_id>/results/", phi.results, name="record_results"),
        path("records/<uuid:record_id>/source/<uuid:entity_id>/", phi.source, name="source"),
        path("records/<uuid:record_id>/export/", exports.export, name="record_export"),
        path("records/<uuid:record_id>/pages/", phi.to_page, name="record_pages"),
        path("records/<uuid:record_id>/pages/<int:number>/", phi.record_page, name="record_page"),
        path("records/<uuid:record_id>/pages/<int:number>/image/", phi.image, name="page_image"),
        path("records/<uuid:record_id>/compare/", compare.compare, name="compare"),
        path(
            "records/<uuid:record_id>/compare/replies/",
            compare.compare_replies,
            name="compare_replies",
        ),
        path("reviews/", reviews.reviews, name="reviews"),
        path("reviews/next/", reviews.take_next_review, name="review_next"),
        path("reviews/learning/", review_learning.learning, name="review_learning"),
        path("reviews/<uuid:item_id>/", review.review, name="review"),
        path("reviews/<uuid:item_id>/<slug:name>/", review.review_act, name="review_act"),
        path("calls/<uuid:call_id>/reading/", phi.call, name="call_reading"),
        path("upload/", upload.upload, name="upload"),
        path("upload/files/", upload.files, name="upload_files"),
        path("upload/batch/", upload.batch, name="upload_batch"),
        path("upload/batch/<str:batch>/close/", upload.close, name="upload_close"),
        path("failures/", failures.failures, name="failures"),
        path("failures/members/", failures.members, name="failure_members"),
        path("retry/", bulk_actions.preview, name="retry"),
        path("retry/start/", bulk_actions.start, name="retry_start"),
        path("bulk-operations/new/<slug:name>/", bulk_actions.preview, name="bulk_preview"),
        path("bulk-operations/new/<slug:name>/start/", bulk_actions.start, name="bulk_start"),
        path("bulk-operations/", bulk_history.history, name="bulk_operations"),
        path("bulk-operations/<uuid:operation_id>/", bulk_history.operation, name="bulk_operation"),
        path("bulk-operations/<uuid:operation_id>/abort/", bulk_history.abort, name="bulk_abort"),
        path("incidents/", incidents.incidents, name="incidents"),
        path("incidents/<uuid:incident_id>/", incidents.incident, name="incident"),
        path("stale/", stale_work.stale, name="stale"),
        path("audit/", audit.audit, name="audit"),
        path("queues/", holds.queues, name="queues"),
        path("holds/<slug:name>/", holds.confirm, name="confirm"),
        path("holds/<slug:name>/perform/", holds.perform_action, name="perform"),
    ]
    for each in pages:
        each.callback = site.admin_view(each.callback)
    return pages
