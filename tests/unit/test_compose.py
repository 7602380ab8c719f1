"""The compose files give every secret, from a variable or from a file, to the right services."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml

from medproc.env import PROJECT_ROOT, SECRETS


def test_the_files_of_secrets_reach_exactly_the_services_that_need_them() -> None:
    base = yaml.safe_load((PROJECT_ROOT / "docker-compose.yml").read_text("utf-8"))
    added = yaml.safe_load((PROJECT_ROOT / "deploy" / "compose-secrets.yml").read_text("utf-8"))
    emptied = (PROJECT_ROOT / "deploy" / "compose-secrets.env").read_text("utf-8").splitlines()[1:]
    of_all = set(SECRETS) - {"REDIS_URL", "DATABASE_OWNER_URL"}

    files = {
        service: {each for each in more["environment"] if each.endswith("_FILE")}
        for service, more in added["services"].items()
    }

    for service in ("console", "workers", "scheduler"):
        assert files[service] == {f"{name}_FILE" for name in of_all}
    assert files["migrate"] == files["workers"] | {"DATABASE_OWNER_URL_FILE"}
    for service, more in added["services"].items():
        assert service in base["services"]
        named = [path.removeprefix("/run/secrets/") for path in more["environment"].values()]
        assert sorted(named) == sorted(more["secrets"])
        assert set(named) <= set(added["secrets"])
    # A variable and its file together are refused, so each variable of a file is empty.
    wanted = {name.removesuffix("_FILE") for names in files.values() for name in names}
    assert {line.removesuffix("=") for line in emptied} == wanted
    text = yaml.safe_dump(base)
    assert not [name for name in wanted if f"${{{name}:" in text.replace(f"${{{name}:-}}", "")]


def test_the_roles_of_compose_get_their_passwords_from_variables_or_files(tmp_path: Path) -> None:
    base = yaml.safe_load((PROJECT_ROOT / "docker-compose.yml").read_text("utf-8"))
    script = base["services"]["roles"]["command"][2].replace("$$", "$")
    (tmp_path / "psql").write_text('#!/bin/sh\necho "$PGPASSWORD $APP_PASSWORD"\n')
    (tmp_path / "psql").chmod(0o700)
    for name in ("owner", "app"):
        (tmp_path / name).write_text(f"{name}-password\n")
    variables = {"PGPASSWORD": "owner-password", "APP_PASSWORD": "app-password"}
    files = {
        **dict.fromkeys(variables, ""),
        "POSTGRES_PASSWORD_FILE": str(tmp_path / "owner"),
        "POSTGRES_APP_PASSWORD_FILE": str(tmp_path / "app"),
    }

    for given in (variables, files):
        ran = subprocess.run(
            ["/bin/sh", "-ec", script],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.splitlines() == ["owner-password app-password"] * 2
