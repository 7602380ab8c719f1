"""The compose files give every secret, from a variable or from a file, to the right services."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from medproc.env import PROJECT_ROOT, SECRETS

COMPOSE = yaml.safe_load((PROJECT_ROOT / "docker-compose.yml").read_text("utf-8"))


def test_the_files_of_secrets_reach_exactly_the_services_that_need_them() -> None:
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
        assert service in COMPOSE["services"]
        named = [path.removeprefix("/run/secrets/") for path in more["environment"].values()]
        assert sorted(named) == sorted(more["secrets"])
        assert set(named) <= set(added["secrets"])
    # A variable and its file together are refused, so each variable of a file is empty.
    wanted = {name.removesuffix("_FILE") for names in files.values() for name in names}
    assert {line.removesuffix("=") for line in emptied} == wanted
    text = yaml.safe_dump(COMPOSE)
    assert not [name for name in wanted if f"${{{name}:" in text.replace(f"${{{name}:-}}", "")]


def test_our_services_write_to_their_volumes_only_and_gain_no_privilege() -> None:
    for name in ("migrate", "console", "workers", "scheduler"):
        service = COMPOSE["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108 - the path inside a container
    # A later USER would undo this one.
    users = re.findall(r"^USER (.+)$", (PROJECT_ROOT / "Dockerfile").read_text("utf-8"), re.M)
    assert users == ["medproc"]


def test_every_port_is_open_on_this_host_only_and_every_image_has_a_version() -> None:
    for name, service in COMPOSE["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert "build" in service or re.search(r":\D*\d", service["image"]), name


def test_the_figures_are_a_profile_that_reads_the_files_of_the_project() -> None:
    services = COMPOSE["services"]
    folder = PROJECT_ROOT / "deploy"
    scrape = yaml.safe_load((folder / "prometheus" / "prometheus.yml").read_text("utf-8"))
    (job,) = scrape["scrape_configs"]
    provisioning = folder / "grafana" / "provisioning"
    sources = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text("utf-8"))
    boards = yaml.safe_load((provisioning / "dashboards" / "medproc.yml").read_text("utf-8"))

    with_profile = {name for name, service in services.items() if "profiles" in service}
    places = {
        place: PROJECT_ROOT / source
        for name in with_profile
        for source, place, *_ in (each.split(":") for each in services[name]["volumes"])
        if source.startswith("./")
    }

    assert with_profile == {"prometheus", "grafana"}
    assert all(source.exists() for source in places.values())
    (token,) = services["prometheus"]["secrets"]
    assert token["target"] == job["authorization"]["credentials_file"]
    assert COMPOSE["secrets"][token["source"]] == {"environment": "METRICS_TOKEN"}
    assert job["static_configs"] == [{"targets": ["console:8000"]}]
    assert f"/etc/prometheus/{scrape['rule_files'][0]}" in places
    assert sources["datasources"][0]["url"] == "http://prometheus:9090"
    board = Path(boards["providers"][0]["options"]["path"])
    assert [place for place in places if Path(place).parent == board]


@pytest.mark.parametrize(("password", "code"), [("", 1), ("long enough", 0)])
def test_grafana_does_not_start_without_a_password(password: str, code: int) -> None:
    *shell, script = COMPOSE["services"]["grafana"]["entrypoint"]
    started = script.replace("$$", "$").replace("/run.sh", "true")

    ran = subprocess.run(
        [*shell, started],
        env={"PATH": os.defpath, "GF_SECURITY_ADMIN_PASSWORD": password},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == code
    assert ("GRAFANA_PASSWORD" in ran.stderr) == bool(code)


def test_the_roles_of_compose_get_their_passwords_from_variables_or_files(tmp_path: Path) -> None:
    script = COMPOSE["services"]["roles"]["command"][2].replace("$$", "$")
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
