"""A worker does the one-time work of its horses before it forks. Counts, never seconds."""

from __future__ import annotations

import json

from tests.support.fresh_process import printed_by

_PROCESS = """
import json, re, sys
import django
django.setup()
from pipeline.codes.search.phrases import phrases
from pipeline.documents import reader
from pipeline.documents.reader.version import reader_version
from pipeline.workers import warming
warming.warm()
warming.warm_engine()
from pipeline.providers.local.warm_up import warm_up as engine
from pipeline.stages.warm_up import warm_up as stages
compiled, compile_one = [], re._compiler.compile
re._compiler.compile = lambda *of: compiled.append(of[0]) or compile_one(*of)
read, loaded = phrases.cache_info().misses, set(sys.modules)
reader.probe("samples/lab_5p_8enc.pdf")
engine()
stages()
print(json.dumps([
    [str(each) for each in compiled],
    phrases.cache_info().misses - read,
    reader_version.cache_info().currsize,
    sorted(name for name in set(sys.modules) - loaded if name.startswith("pipeline")),
]))
"""


def test_a_horse_compiles_reads_and_imports_nothing_that_its_worker_has_met() -> None:
    printed = printed_by(_PROCESS)

    compiled, lists_read, versions_known, imported = json.loads(printed.splitlines()[-1])
    assert compiled == []
    assert lists_read == 0
    assert versions_known == 1
    assert imported == []
