"""The rows of `processed_documents`: the completed passes that other records can reuse."""

from __future__ import annotations

from django.db import connection

from pipeline.core.states import CALLING_STEPS, Step
from pipeline.execution.reuse.conditions import Conditions
from pipeline.transitions import Lease

# A pass that reused everything is no source: its replies belong to the record that they came from.
_REMEMBER = """
INSERT INTO processed_documents (id, document_hash, owner, step, engine, model_version,
  prompt_version, schema_version, zones, input_mode, code_table_version, plan, shell_file_id)
SELECT gen_random_uuid(), f.sha256, f.owner, %(step)s, %(engine)s, %(model_version)s,
  %(prompt_version)s, %(schema_version)s, %(zones)s, %(input_mode)s, %(code_table_version)s,
  %(plan)s, f.id
FROM shell_files f
WHERE f.id = %(shell_file)s AND f.owner <> '' AND (
  NOT EXISTS (SELECT 1 FROM record_reuses r WHERE r.shell_file_id = f.id AND r.step = %(step)s)
  OR (%(has_replies)s AND EXISTS (
    SELECT 1 FROM kept_replies k WHERE k.shell_file_id = f.id AND k.step = %(step)s)))
ON CONFLICT (shell_file_id, step) DO NOTHING
"""


def remember(lease: Lease, conditions: Conditions) -> None:
    """Note that a pass of a record has completed; call this inside the fence that ends the pass.

    A pass that neither reads pages nor calls a provider has nothing to reuse.
    """
    if lease.step is not Step.PAGES and lease.step not in CALLING_STEPS:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _REMEMBER,
            {
                **conditions.as_columns(),
                "step": lease.step.value,
                "shell_file": lease.shell_file_id,
                "has_replies": lease.step in CALLING_STEPS,
            },
        )
