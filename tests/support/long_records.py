"""A record with many entities, and the memory that an export of this record needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.db import connection

from medproc.env import PROJECT_ROOT
from pipeline.core.states import JobStatus
from pipeline.models import Encounter, Job
from tests.support.rows import a_job, an_encounter

FORMATS = ("pair", "fhir", "html", "csv")
PER_PAGE, ENCOUNTERS = 50, 30
CHILD = """
import json, re, resource, sys
from pathlib import Path
sys.argv[0] = "manage.py"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
status = Path("/proc/self/status")
# On Linux, ru_maxrss begins with the memory of the process that started this one.
peak = (
    int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) if status.exists()
    else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
) // 1024
print(json.dumps({"peak_mb": peak}))
"""
_PAGES = """
INSERT INTO shell_file_pages (shell_file_id, page_number, text, source, width, height, created_at)
SELECT %(record)s, n, repeat('glucose 5.10 mmol/L (3.9-5.6) ', %(per_page)s), 'text_layer', 612,
  792, now()
FROM generate_series(1, %(pages)s) n
"""
_ENTITIES = """
INSERT INTO pass1_entity_detections (id, shell_file_id, healthcare_encounter_id,
  processing_session_id, patient_id, entity_index, category, name, page_number, char_start,
  char_end, quote, alignment, accepted, value, unit, engine, engine_confidence, confidence,
  review_flags, created_at)
SELECT gen_random_uuid(), %(record)s, (%(encounters)s::uuid[])[1 + n %% %(many)s], s.id,
  s.patient_id, n, 'lab', 'glucose', 1 + n / %(per_page)s, 30 * (n %% %(per_page)s),
  30 * (n %% %(per_page)s) + 19, 'glucose 5.10 mmol/L', 'exact', true, '5.10', 'mmol/L',
  'local-rules-3', 1, 0.9, '[]', now()
FROM generate_series(0, %(pages)s * %(per_page)s - 1) n, ai_processing_sessions s
WHERE s.shell_file_id = %(record)s;
INSERT INTO pass2_enriched_entities (id, entity_id, shell_file_id, healthcare_encounter_id,
  patient_id, category, attributes, flags, engine, created_at)
SELECT gen_random_uuid(), id, shell_file_id, healthcare_encounter_id, patient_id, category,
  '{"value": {"printed": "5.10", "number": "5.10", "unit": "mmol/L", "printed_unit": "mmol/L"},
    "reference_range": {"printed": "3.9-5.6", "low": "3.9", "high": "5.6"}, "computed_flag": "N"}',
  '[]', 'local-rules-3', now()
FROM pass1_entity_detections WHERE shell_file_id = %(record)s;
ANALYZE pass1_entity_detections, pass2_enriched_entities
"""


def a_long_record(pages: int) -> Job:
    """Write a finished record with 50 entities on each page, all published, and return its job."""
    job = a_job(status=JobStatus.COMPLETED)
    for index in range(1, ENCOUNTERS + 1):
        an_encounter(job, index=index)
    encounters = Encounter.objects.filter(shell_file_id=job.shell_file_id)
    encounters.update(entities_published_at=job.created_at)
    values: dict[str, Any] = {
        "record": job.shell_file_id,
        "encounters": [str(each) for each in encounters.values_list("id", flat=True)],
        "many": ENCOUNTERS,
        "pages": pages,
        "per_page": PER_PAGE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAGES, values)
        cursor.execute(_ENTITIES, values)
    return job


def peak_of_export(job: Job, form: str, folder: Path) -> int:
    """Export the record with `manage.py export` and return the peak memory of the process in MB."""
    arguments = ["export", str(job.shell_file_id), "--format", form, "--output", str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        stdout=subprocess.PIPE, text=True, check=True, cwd=PROJECT_ROOT, timeout=900,
    )  # fmt: skip
    return int(json.loads(done.stdout.splitlines()[-1])["peak_mb"])
