"""Failures in groups, and the members of a group with the same filter."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import django_filters
from django import forms
from django.db.models import (
    Case,
    Exists,
    F,
    Field,
    IntegerField,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
    When,
)  # fmt: skip
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone

from observability.diagnostics.failures import OF_CALLS, FailureGroup, FailureSource, groups
from observability.drilldown.nodes import FailureCause
from observability.listing.pagination import keyset_page
from observability.listing.records import root_cause
from observability.listing.time_window import Period, Window, asked_for
from observability.metrics.charts import bars
from observability.views.decorators import page
from observability.views.render import render_page
from pipeline.core.errors import ErrorCode, UserError
from pipeline.core.labels import PASS_TITLES, counted
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import OUTCOME_LATE, OUTCOME_OK, Job, ProviderCall
from pipeline.models.work_tables import WORK_TABLES, WorkTable

LISTED = 50
WINDOWS = [(window.value, window.words) for window in Window]
PERIOD_FIELDS = ("window", "since", "until")
ABSORBED = "absorbed"
TIME = forms.DateTimeInput(attrs={"type": "datetime-local"})


@page()
def failures(request: HttpRequest) -> HttpResponse:
    """Show the groups of a period (`?window=1h`, `24h`, `7d`, or `?since=…&until=…`)."""
    period, problem = _period(request)
    found = groups(period)
    return render_page(
        request,
        "console/failures.html",
        "Failures",
        status=HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK,
        problem=problem,
        found=found,
        rows=[(group, _trend(group), _members_query(group, period)) for group in found.groups],
        period=period,
        windows=list(Window),
        times=[
            (name, label, period.fields.get(name, ""))
            for name, label in (("since", "From"), ("until", "To"))
        ],
    )


class Times(django_filters.FilterSet):  # type: ignore[misc]  # the library has no types
    """The time filter: a window that ends now, or two times."""

    window = django_filters.ChoiceFilter(
        label="Within", choices=WINDOWS, method="within", empty_label="the times"
    )
    since = django_filters.IsoDateTimeFilter(label="From", method="within", widget=TIME)
    until = django_filters.IsoDateTimeFilter(label="To", method="within", widget=TIME)

    def within(self, rows: QuerySet[Any], name: str, value: Any) -> QuerySet[Any]:
        """Keep all rows; `members` has already limited them to the period of these fields."""
        return rows


class FailedCallsFilter(Times):
    """The filter of the members of a group; the URL carries the whole filter."""

    cause = django_filters.CharFilter(label="Cause", field_name="outcome")
    step = django_filters.ChoiceFilter(
        label="Pass", choices=list(PASS_TITLES.items()), empty_label="every pass"
    )
    model = django_filters.CharFilter(label="Model")
    state = django_filters.ChoiceFilter(
        label="Now",
        choices=[("failed", "failed for good"), (ABSORBED, "succeeded since")],
        method="standing",
        empty_label="any",
    )

    class Meta:
        model = ProviderCall
        fields: list[str] = []

    def standing(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Keep the calls whose work item has this status now."""
        status = WorkStatus.FAILED if value == "failed" else WorkStatus.SUCCEEDED
        return rows.filter(item_status=status)


class FailedJobsFilter(Times):
    """The filter of jobs that failed without a call."""

    cause = django_filters.CharFilter(label="Cause", field_name="error_code")
    step = django_filters.ChoiceFilter(
        label="Pass",
        field_name="current_step",
        choices=list(PASS_TITLES.items()),
        empty_label="every pass",
    )

    class Meta:
        model = Job
        fields: list[str] = []


@page()
def members(request: HttpRequest) -> HttpResponse:
    """List the work items of a group, or its jobs (`?source=job`), newest first."""
    is_jobs = request.GET.get("source") == FailureSource.JOB
    asked = request.GET.copy()
    period, problem = _period(request)
    for name in PERIOD_FIELDS:
        asked[name] = period.fields.get(name, "")
    place = asked.pop("after", [""])[-1]
    chosen: django_filters.FilterSet
    if is_jobs:
        chosen = FailedJobsFilter(asked, queryset=failed_jobs(period))
        listed = keyset_page(chosen.qs, "completed_at", place, LISTED)
    else:
        chosen = FailedCallsFilter(asked, queryset=failed_calls(period))
        listed = keyset_page(chosen.qs, "created_at", place, LISTED)
    cause = asked.get("cause", "")
    step = asked.get("step", "")
    where = f" in {PASS_TITLES[Step(step)]}" if step in Step.values else ""
    return render_page(
        request,
        "console/members.html",
        f"Failures: {cause or 'all causes'}{where}",
        status=HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK,
        problem=problem,
        filter=chosen,
        listed=listed,
        is_jobs=is_jobs,
        source=FailureSource.JOB if is_jobs else FailureSource.CALL,
        advice=FailureCause(code=cause).advice,
        query=asked.urlencode(),
        within=urlencode({"list": "failures", **{k: v for k, v in asked.items() if v}}),
        column="completed_at" if is_jobs else "created_at",
        period_query=urlencode(period.fields),
        retry_query=_retry_query(asked, period),
    )


def failed_calls(period: Period) -> QuerySet[ProviderCall, ProviderCall]:
    """Return the last failed call of each work item, for each cause."""
    # Calls of one flush have the same time, so the attempt number decides.
    later = ProviderCall.objects.filter(
        outcome=OuterRef("outcome"), attempt__gt=OuterRef("attempt")
    )
    return (
        ProviderCall.objects.filter(created_at__gte=period.since, created_at__lt=period.until)
        .exclude(outcome=OUTCOME_LATE)
        # PostgreSQL uses the partial index only with exactly this condition.
        .exclude(outcome=OUTCOME_OK)
        .filter(
            ~Exists(later.filter(work_item_id=OuterRef("work_item_id"))),
        )
        .annotate(
            record_id=F("processing_session__shell_file_id"),
            item_status=_of_work_item(lambda _: "status", TextField()),
            item_index=_of_work_item(lambda table: table.index, IntegerField()),
            encounter_index=_of_work_item(
                lambda table: f"{table.encounter}__encounter_index" if table.encounter else None,
                IntegerField(),
            ),
        )
    )


def _of_work_item(column: Callable[[WorkTable], str | None], field: Field[Any, Any]) -> Case:
    """Return a column of the work item of a call; its step tells the table, its id the row."""
    named = [(table, column(table)) for table in WORK_TABLES.values()]
    return Case(
        *(
            When(
                step=table.step,
                then=Subquery(table.rows.filter(pk=OuterRef("work_item_id")).values(name)[:1]),
            )
            for table, name in named
            if name
        ),
        default=None,
        output_field=field,
    )


def failed_jobs(period: Period) -> QuerySet[Job, Job]:
    """Return the jobs that failed without a call."""
    return (
        Job.objects.filter(
            status__in=[JobStatus.FAILED, JobStatus.DEAD],
            completed_at__gte=period.since,
            completed_at__lt=period.until,
        )
        .exclude(error_code__in=OF_CALLS)
        .defer("error_details")
        .annotate(root=root_cause())
    )


def _period(request: HttpRequest) -> tuple[Period, str]:
    """Return the requested period; for an invalid period, return the last day and the problem."""
    now = timezone.now()
    try:
        return asked_for(request.GET.dict(), now), ""
    except UserError as error:
        return Period.last(Window.DAY, now), f"{error.message}; the page shows the last 24 hours"


def _retry_query(asked: QueryDict, period: Period) -> str:
    """Return the filter as the query of a retry; empty if there is nothing to retry."""
    cause, step = asked.get("cause", ""), asked.get("step", "")
    if cause not in ErrorCode._value2member_map_ or asked.get("state") == ABSORBED:
        return ""
    query = {"error_code": cause, **period.fields}
    if step in Step.values:
        query["step"] = step
    if model := asked.get("model", ""):
        query["model"] = model
    return urlencode(query)


def _trend(group: FailureGroup) -> Any:
    words = f"{counted(sum(group.trend), 'failure')}; the highest bar is {max(group.trend)}"
    return bars(group.trend, words=words, kind="failed")


def _members_query(group: FailureGroup, period: Period) -> dict[str, str]:
    query = {
        "source": group.source.value,
        **period.fields,
        "cause": group.cause,
        "step": group.step.value,
    }
    return query | ({"model": group.model} if group.model else {})
