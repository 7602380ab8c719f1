"""The privileges of the application role: what console, workers and scheduler may do in SQL.

`migrate` grants them as the owner of the tables. The role can append to the audit and to the calls,
and cannot change or delete their rows. A table that is not named here has the usual privileges.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

USUAL = frozenset({"SELECT", "INSERT", "UPDATE"})
READ_ONLY = frozenset({"SELECT"})
APPEND_ONLY = frozenset({"SELECT", "INSERT"})
DELETABLE = USUAL | {"DELETE"}
OF_SEQUENCES = frozenset({"SELECT", "USAGE"})
"""Without UPDATE on a sequence, setval is refused."""

PRIVILEGES: dict[str, frozenset[str]] = {
    "audit_events": APPEND_ONLY,
    # The trigger of audit_events inserts the links, with the rights of the owner.
    "audit_chain": READ_ONLY,
    "provider_calls": APPEND_ONLY,
    "review_decisions": APPEND_ONLY,
    # The trigger of review_decisions writes the locks, with the rights of the owner.
    "locked_fields": READ_ONLY,
    # `prune` deletes replies after their retention time.
    "provider_payloads": APPEND_ONLY | {"DELETE"},
    "kept_replies": APPEND_ONLY | {"DELETE"},
    # The scheduler replaces the rows of a counter by their sum.
    "metric_counts": APPEND_ONLY | {"DELETE"},
    # The scheduler writes each hour once; `prune` deletes old hours.
    "sla_snapshots": APPEND_ONLY | {"DELETE"},
    "django_migrations": READ_ONLY,
    "django_content_type": READ_ONLY,
    "auth_permission": READ_ONLY,
    **dict.fromkeys(
        (
            "auth_user",
            "auth_group",
            "auth_user_groups",
            "auth_user_user_permissions",
            "auth_group_permissions",
            "django_admin_log",
            "django_session",
            # A deleted user takes their identity along.
            "federated_identities",
            # The end of an alarm.
            "audit_checks",
            # A batch without any submitted record is deleted.
            "record_batches",
            # A load replaces the codes of a system.
            "code_systems",
            # A sweep deletes the reports of older sweeps.
            "file_sweeps",
            # A pass that runs again replaces the lists of the record.
            "record_list_items",
            # Pass 1.5 that runs again replaces the candidates of an encounter.
            "pass1_5_code_candidates",
            # A load replaces the index of a system.
            "code_search_entries",
            "code_search_words",
            # `prune --table bulk_operations` deletes ended operations.
            "bulk_operations",
            # A refused request leaves no idempotency key.
            "api_idempotency_keys",
            # A client deletes its webhooks; `prune` deletes old deliveries.
            "api_webhook_endpoints",
            "api_webhook_deliveries",
            # The end of an extraction that other records wait for.
            "extraction_flights",
        ),
        DELETABLE,
    ),
}
"""Tables with other than the usual privileges. A foreign key deletes with the owner's rights."""

# An extension's tables belong to another role.
_OWN = """
SELECT relname, relkind = 'S' FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
  AND pg_has_role(relowner, 'USAGE')
ORDER BY relname
"""
# A member can take on a role with SET ROLE even if the member does not inherit its rights. The
# owner of a schema can drop every table in the schema.
_CAN_CHANGE = """
SELECT r.rolsuper
  OR pg_has_role(r.rolname, t.relowner, 'MEMBER')
  OR pg_has_role(r.rolname, s.nspowner, 'MEMBER')
  OR has_table_privilege(r.rolname, t.oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER')
  OR has_any_column_privilege(r.rolname, t.oid, 'UPDATE')
FROM pg_roles r, pg_class t JOIN pg_namespace s ON s.oid = t.relnamespace
WHERE r.rolname = %(role)s AND t.oid = ANY (%(tables)s::regclass[])
"""
AUDIT_TABLES = ("audit_events", "audit_chain", "provider_calls")


def can_change_audit(connection: BaseDatabaseWrapper, role: str | None = None) -> bool:
    """Return whether a role, by default the connected one, can change audit rows or calls."""
    with connection.cursor() as cursor:
        if role is None:
            cursor.execute("SELECT current_user")
            (role,) = cursor.fetchone()
        cursor.execute(_CAN_CHANGE, {"role": role, "tables": [f"public.{t}" for t in AUDIT_TABLES]})
        return any(can for (can,) in cursor)


def grant(connection: BaseDatabaseWrapper, role: str) -> bool:
    """Give the application role exactly its privileges; return False if no such role exists.

    The connection must be the owner's. One transaction changes all privileges, so a running
    process never misses one.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            return False
        cursor.execute(_OWN)
        own = list(cursor)
        cursor.execute(sql.SQL("; ").join(_statements(own, role)).as_string())
    return True


def _statements(own: list[tuple[str, bool]], role: str) -> Iterator[sql.Composed]:
    to = sql.Identifier(role)
    yield sql.SQL("REVOKE CREATE ON SCHEMA public FROM PUBLIC, {}").format(to)
    yield sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(to)
    for name, is_sequence in own:
        on = sql.SQL("SEQUENCE {}" if is_sequence else "TABLE {}").format(
            sql.Identifier("public", name)
        )
        privileges = OF_SEQUENCES if is_sequence else PRIVILEGES.get(name, USUAL)
        yield sql.SQL("REVOKE ALL ON {} FROM PUBLIC, {}").format(on, to)
        yield sql.SQL("GRANT {} ON {} TO {}").format(
            sql.SQL(", ").join(map(sql.SQL, sorted(privileges))), on, to
        )
