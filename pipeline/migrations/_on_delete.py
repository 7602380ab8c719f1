"""Puts the ON DELETE rule of each foreign key into the database; Django keeps it in Python only.

A migration that adds a foreign key runs `set_on_delete_rules` afterwards. Plain SQL and the ORM
then delete alike. `tests/integration/test_schema.py` compares every constraint with its model.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

RULES = {
    models.CASCADE: "CASCADE",
    models.SET_NULL: "SET NULL",
    models.PROTECT: "RESTRICT",
    models.DO_NOTHING: "NO ACTION",
}


def set_on_delete_rules(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give every foreign key of the pipeline the ON DELETE rule of its model."""
    # Django adds foreign keys and indexes at the end of a migration. The foreign keys must exist
    # before they can be replaced, so the waiting statements run now.
    for statement in schema_editor.deferred_sql:
        schema_editor.execute(statement, None)
    schema_editor.deferred_sql.clear()
    # PostgreSQL alters no table that has pending checks of a deferred constraint.
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for model in apps.get_app_config("pipeline").get_models():
        for field in model._meta.local_fields:
            if isinstance(field, models.ForeignKey):
                _replace(schema_editor, model, field)


def _replace(
    schema_editor: BaseDatabaseSchemaEditor, model: type[models.Model], field: models.ForeignKey
) -> None:
    table, column = model._meta.db_table, field.column
    target = field.remote_field.model._meta
    rule = RULES[field.remote_field.on_delete]
    schema_editor.execute(
        f"""
        DO $$ DECLARE constraint_name text;
        BEGIN
          SELECT c.conname INTO STRICT constraint_name
          FROM pg_constraint c
          JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
          WHERE c.contype = 'f' AND c.conrelid = '"{table}"'::regclass AND a.attname = '{column}';
          EXECUTE format('ALTER TABLE "{table}" DROP CONSTRAINT %I', constraint_name);
          EXECUTE format('ALTER TABLE "{table}" ADD CONSTRAINT %I FOREIGN KEY ("{column}") '
            'REFERENCES "{target.db_table}" ("{target.pk.column}") ON DELETE {rule} '
            'DEFERRABLE INITIALLY DEFERRED', constraint_name);
        END $$
        """,
        params=None,
    )
