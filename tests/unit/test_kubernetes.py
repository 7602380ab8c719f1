"""The manifests for Kubernetes run the services of the compose file, with the same protections."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from medproc.env import PROJECT_ROOT, SECRETS, Environment
from observability.metrics.prometheus import catalogue

FOLDER = PROJECT_ROOT / "deploy" / "kubernetes"
COMPOSE = yaml.safe_load((PROJECT_ROOT / "docker-compose.yml").read_text("utf-8"))
COMPONENTS = ("migrate", "console", "workers", "scheduler")


def objects() -> list[dict[str, Any]]:
    """Return every object of every manifest that the kustomization names."""
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))["resources"]
    assert {*names, "kustomization.yaml"} == {path.name for path in FOLDER.iterdir()}
    return [each for name in names for each in yaml.safe_load_all((FOLDER / name).read_text())]


OBJECTS = objects()


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in OBJECTS if each["kind"] == kind]


def pod_of(component: str) -> dict[str, Any]:
    (found,) = (
        each["spec"]["template"]["spec"]
        for each in (*of_kind("Deployment"), *of_kind("Job"))
        if each["metadata"]["name"] == f"medproc-{component}"
    )
    return dict(found)


def seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_service_runs_the_command_of_the_compose_file_without_any_privilege(
    component: str,
) -> None:
    pod, service = pod_of(component), COMPOSE["services"][component]
    (container,) = pod["containers"]

    command = service.get("command", "python manage.py serve 0.0.0.0:8000")
    assert container["command"] == command.split()
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["automountServiceAccountToken"] is False
    places = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(places) == {"/data", "/tmp"}  # noqa: S108 - the path inside a container
    assert set(places.values()) == {volume["name"] for volume in pod["volumes"]}
    if "stop_grace_period" in service:
        assert pod["terminationGracePeriodSeconds"] >= seconds(service["stop_grace_period"])


def test_only_the_migration_gets_the_rights_of_the_owner() -> None:
    secrets = {
        component: {
            source["secretRef"]["name"]
            for source in pod_of(component)["containers"][0]["envFrom"]
            if "secretRef" in source
        }
        for component in COMPONENTS
    }

    assert secrets.pop("migrate") == {"medproc", "medproc-owner"}
    assert all(names == {"medproc"} for names in secrets.values())
    assert of_kind("Secret") == [], "a manifest holds no secret"


def test_the_configuration_holds_known_variables_and_no_secret() -> None:
    (found,) = of_kind("ConfigMap")

    assert set(found["data"]) <= set(Environment.model_fields) - set(SECRETS)
    assert all(isinstance(value, str) for value in found["data"].values())


def test_each_selector_finds_its_pods_and_each_probe_its_page() -> None:
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in of_kind("Deployment")
    }
    for each in of_kind("Deployment"):
        assert each["spec"]["selector"]["matchLabels"] == labels[each["metadata"]["name"]]
    for kind in ("Service", "PodDisruptionBudget"):
        (found,) = of_kind(kind)
        selector = found["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels["medproc-console"]
    (console,) = pod_of("console")["containers"]
    probes = {name: console[name]["httpGet"]["path"] for name in console if name.endswith("Probe")}
    assert probes == {
        "readinessProbe": "/health/ready",
        "livenessProbe": "/health/live",
        "startupProbe": "/health/live",
    }


def test_the_workers_are_scaled_by_a_metric_that_exists() -> None:
    (scaled,) = of_kind("ScaledObject")
    (trigger,) = scaled["spec"]["triggers"]

    names = re.findall(r"\bmedproc_\w+", trigger["metadata"]["query"])
    assert names
    assert set(names) <= {metric.name for metric in catalogue.ALL}
    assert scaled["spec"]["scaleTargetRef"]["name"] == "medproc-workers"
