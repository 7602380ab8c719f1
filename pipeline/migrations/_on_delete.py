"""Carries ON DELETE into the database, since Django keeps it in Python only.

A migration that adds a foreign key runs `carry` after it, so that plain SQL and the ORM delete
alike. `tests/integration/test_schema.py` compares every constraint with its model.
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


def carry(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give every foreign key of the pipeline the ON DELETE rule of its model."""
    # Constraints added in this transaction wait for its end; they must stand to be replaced.
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
        DO $$ DECLARE found text;
        BEGIN
          SELECT c.conname INTO STRICT found
          FROM pg_constraint c
          JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
          WHERE c.contype = 'f' AND c.conrelid = '"{table}"'::regclass AND a.attname = '{column}';
          EXECUTE format('ALTER TABLE "{table}" DROP CONSTRAINT %I', found);
          EXECUTE format('ALTER TABLE "{table}" ADD CONSTRAINT %I FOREIGN KEY ("{column}") '
            'REFERENCES "{target.db_table}" ("{target.pk.column}") ON DELETE {rule} '
            'DEFERRABLE INITIALLY DEFERRED', found);
        END $$
        """,
        params=None,
    )
