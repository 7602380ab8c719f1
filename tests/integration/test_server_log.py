"""The log of PostgreSQL holds no row, no value and no statement of a session."""

# ruff: noqa: S608 - every statement is built from the constants below
from __future__ import annotations

import re
from contextlib import suppress

import psycopg
import pytest

from medproc.embedded import Places
from medproc.embedded.places import SUPERUSER
from medproc.embedded.postgres import DURABLE
from medproc.env import PROJECT_ROOT

CANARY = "Wilhelmina-Canary"
SET_UP = """
CREATE TABLE patients (id int PRIMARY KEY, name text CHECK (name <> ''), age int NOT NULL);
CREATE OR REPLACE FUNCTION quotes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE WARNING 'look at %', NEW; RAISE EXCEPTION 'refused %', NEW USING DETAIL = NEW::text;
END $$;
CREATE TABLE visits (name text);
CREATE TRIGGER quotes BEFORE INSERT ON visits FOR EACH ROW EXECUTE FUNCTION quotes();
INSERT INTO patients VALUES (1, 'first', 1);
"""
REFUSED = {
    "trigger": f"INSERT INTO visits VALUES ('{CANARY}')",
    "check": f"INSERT INTO patients VALUES (2, '{CANARY}', NULL)",
    "unique": f"INSERT INTO patients VALUES (1, '{CANARY}', 2)",
    "input": f"INSERT INTO patients VALUES ('{CANARY}', 'x', 2)",
    "syntax": f"SELECT FROM WHERE '{CANARY}'",
    "cast": f"SELECT '{CANARY}'::int",
    "column": f'SELECT "{CANARY}"',
    "time limit": f"SET statement_timeout = 1; SELECT pg_sleep(9), '{CANARY}'",
}


@pytest.mark.parametrize("way", ["literal", "parameter"])
def test_an_error_that_quotes_a_row_does_not_reach_the_log(
    servers: Places, module_db: str, way: str
) -> None:
    with psycopg.connect(module_db, user=SUPERUSER, autocommit=True) as session:
        session.execute(f"DROP TABLE IF EXISTS patients, visits CASCADE; {SET_UP}".encode())
        for statement in REFUSED.values():
            with suppress(psycopg.Error):
                if way == "literal":
                    session.execute(statement.encode())
                else:
                    session.execute(statement.replace(f"'{CANARY}'", "%s").encode(), [CANARY])
    log = (servers.postgres_data / "server.log").read_text("utf-8", "replace")

    assert "database system is ready" in log
    assert CANARY not in log


def test_compose_starts_the_server_with_the_same_settings_of_the_log() -> None:
    text = (PROJECT_ROOT / "docker-compose.yml").read_text("utf-8")

    given = dict(re.findall(r"-c (log_\w+)=(\S+)", text))

    assert given == {
        name: value
        for name, value in DURABLE.items()
        if name.startswith("log_") and name != "log_timezone"
    }
