"""Each entry of the registries names columns, tasks and engines that exist."""

from __future__ import annotations

import re
from dataclasses import replace
from pkgutil import resolve_name

import pytest
from django.conf import settings
from django.contrib import admin
from django.db.models import Q

from gemini_emulator.answers import Answers
from observability.drilldown.lookup import located_models
from pipeline.core.states import (
    CALLING_STEPS,
    STATUS_AFTER,
    STATUS_BEFORE,
    Step,
    SummaryStatus,
    WorkStatus,
)
from pipeline.core.types import PageSlice
from pipeline.models import Encounter
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable, composed, table_of
from pipeline.providers.local import answer_to
from pipeline.providers.prompts import read_prompt, render
from pipeline.providers.tasks import TASKS, Task
from pipeline.queueing.queues import QUEUES

PAGE = PageSlice(page=1, start=0, text="Assessment: asthma.")


@pytest.mark.parametrize("table", WORK_TABLES.values(), ids=lambda table: str(table.noun))
def test_an_entry_names_columns_that_exist(table: WorkTable) -> None:
    columns = {field.name for field in table.model._meta.local_fields}
    named = {table.index, *(column for column, _ in table.counts), *table.error_columns}
    named |= set(filter(None, (table.estimate, table.context, table.encounter)))
    named.add(table.owner_field)

    assert named <= columns
    assert table.task in TASKS
    if table.parent:
        parent = {field.name for field in table.parent.model._meta.local_fields}
        needed = {"id", "shell_file", "status", *table.parent.columns}
        needed |= set(filter(None, (table.parent.failed_item, table.parent.encounter)))
        needed |= set(re.findall(r"(\w+) =", table.parent.reset))
        if table.parent.encounter:
            needed.add("updated_at")
        else:
            needed |= {"completed_at", "error_code", "error_message"}
        assert needed <= parent
        assert table.parent.encounter in {None, table.encounter}
        if table.parent.publication:
            assert Encounter._meta.get_field(table.parent.publication)
    if table.results:
        results = {field.name for field in table.results._meta.local_fields}
        assert {"shell_file", *filter(None, [table.encounter])} <= results
    if table.slices:
        assert callable(resolve_name(table.slices))


@pytest.mark.parametrize("table", WORK_TABLES.values(), ids=lambda table: str(table.noun))
def test_the_console_has_a_page_for_each_row_of_a_pass(table: WorkTable) -> None:
    models = {table.model, table.owner, *filter(None, [table.results])}

    assert models <= located_models()
    assert all(admin.site.is_registered(model) for model in models)


@pytest.mark.parametrize("table", WORK_TABLES.values(), ids=lambda table: str(table.noun))
def test_a_partial_index_answers_the_search_for_stale_items(table: WorkTable) -> None:
    stale = [
        index
        for index in table.model._meta.indexes
        if index.fields == ["started_at"] and index.condition == Q(status=WorkStatus.PROCESSING)
    ]

    assert len(stale) == 1


def test_each_step_of_the_registry_is_known_as_a_calling_step() -> None:
    assert set(WORK_TABLES) <= CALLING_STEPS
    assert [table.step for table in WORK_TABLES.values()] == list(WORK_TABLES)
    assert len({table.noun for table in WORK_TABLES.values()}) == len(WORK_TABLES)


def test_a_model_that_no_pass_has_registered_is_an_error() -> None:
    with pytest.raises(LookupError, match="WorkItem"):
        table_of(WorkItem)  # type: ignore[type-abstract] # the shared base has no table


def test_what_is_composed_follows_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    nouns = composed(lambda tables: [table.noun for table in tables])
    before = nouns()

    monkeypatch.delitem(WORK_TABLES, next(iter(WORK_TABLES)))

    assert nouns() == before[1:]


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: str(task.name))
def test_a_task_is_rendered_read_and_answered(task: Task) -> None:
    question = read_prompt(render(task, "0" * 32, [PAGE]))

    reply = answer_to(question)

    assert question.kind == task.name
    assert question.slices == (PAGE,)
    assert isinstance(reply, task.reply)
    assert isinstance(getattr(reply, task.results), list)
    assert f'"{task.results}": []' in Answers("minimal").to(question, {})


def test_a_task_has_a_name_that_a_prompt_can_hold() -> None:
    with pytest.raises(ValueError, match="a-z and underscores"):
        replace(next(iter(TASKS.values())), name="zones2")


def test_the_summary_of_a_record_before_a_step_is_that_after_the_step_before() -> None:
    assert list(STATUS_AFTER) == list(STATUS_BEFORE) == list(Step)
    assert STATUS_BEFORE[Step.PASS05] == STATUS_BEFORE[Step.PASS1] == SummaryStatus.INITIALIZED
    assert STATUS_BEFORE[Step.PASS2] == SummaryStatus.PASS1_ONLY
    assert STATUS_BEFORE[Step.PASS3] == SummaryStatus.PASS1_PASS2


def test_the_settings_name_the_queue_of_each_step() -> None:
    assert tuple(settings.RQ_QUEUES) == QUEUES


def test_a_prompt_of_an_unknown_task_is_refused() -> None:
    with pytest.raises(ValueError, match="not a prompt"):
        read_prompt(f"<<<TASK horoscope {'0' * 32} zones=no>>>")
