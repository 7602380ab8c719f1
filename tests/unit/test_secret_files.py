"""A secret comes from the file that NAME_FILE names; each flaw is one line without the content."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from medproc import env, serving_user
from tests.support.wrong_values import CANARY

LineOf = Callable[[str, str], str]
RIGHT = {
    "DATABASE_URL": f"postgresql://u:{CANARY}@db/x",
    "DATABASE_OWNER_URL": f"postgresql://o:{CANARY}@db/x",
    "REDIS_URL": f"redis://:{CANARY}@cache",
    "SECRET_KEY": CANARY * 8,
    "METRICS_TOKEN": CANARY * 8,
    "OIDC_CLIENT_SECRET": CANARY * 8,
    "STORAGE_SECRET_KEY": CANARY,
    "GEMINI_API_KEY": CANARY,
    "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{CANARY}",
    "SENTRY_DSN": f"https://{CANARY}@tracker/7",
}
FLAWS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "a line end alone": (b"\r\n", "is empty"),
    "not UTF-8": (b"hunter2\xff" * 8, "is not UTF-8"),
    "UTF-16": (("hunter2" * 8).encode("utf-16"), "holds a NUL byte"),
    "NUL": (b"hunter2\0" * 8, "holds a NUL byte"),
    "too large": (b"hunter2" * 10_000, "is larger than 64 KiB"),
    "a byte order mark": (b"\xef\xbb\xbf" + b"hunter2" * 8, "control character"),
    "two line ends": (b"hunter2" * 8 + b"\n\n", "a space or a line end"),
    "a space": (b" " + b"hunter2" * 8, "a space or a line end"),
    "quotes": (b'"' + b"hunter2" * 8 + b'"', "is in quotes"),
    "two lines": (b"hunter2" * 8 + b"\nhunter2", "control character"),
    "too long": (b"hunter2" * 1_000, "is too long"),
    "too short": (b"hunter2\n", "is too short"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in env.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def only_problem(bare_environment: pytest.MonkeyPatch) -> LineOf:
    """Return the line of the only problem with a variable; the line quotes no content."""

    def line_of(variable: str, value: str) -> str:
        bare_environment.setenv(variable, value)
        _, problems = env.load()
        (problem,) = problems
        (line,) = problem.line.splitlines()
        assert problem.variable == variable
        assert CANARY not in repr(problem)
        return line

    return line_of


def test_every_secret_variable_and_no_other_can_come_from_a_file() -> None:
    assert set(env.SECRETS) == set(RIGHT)


@pytest.mark.parametrize("line_end", [b"", b"\n", b"\r\n"])
def test_each_secret_is_read_from_its_file_without_the_line_end_and_masked(
    line_end: bytes, bare_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in RIGHT.items():
        (tmp_path / name).write_bytes(value.encode() + line_end)
        bare_environment.setenv(f"{name}_FILE", str(tmp_path / name))

    environment, problems = env.load()

    assert problems == ()
    assert {name: str(getattr(environment, name)) for name in RIGHT} == RIGHT
    assert CANARY not in repr(environment) + str(environment)
    assert env.warnings_of(environment) == ()


def test_a_link_is_followed_because_kubernetes_mounts_secrets_as_links(
    bare_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "key").write_text("k" * 50)
    (tmp_path / "key").symlink_to("..data/key")
    bare_environment.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))

    environment, problems = env.load()

    assert problems == ()
    assert str(environment.SECRET_KEY) == "k" * 50


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_wrong_content_is_one_line_that_names_variable_and_path(
    flaw: str, only_problem: LineOf, tmp_path: Path
) -> None:
    content, reason = FLAWS[flaw]
    (tmp_path / "key").write_bytes(content)

    line = only_problem("SECRET_KEY_FILE", str(tmp_path / "key"))

    assert line.startswith(f"(medproc.E003) SECRET_KEY_FILE: names {tmp_path}/key, ")
    assert reason in line
    assert "Expected: the absolute path of a file with this content: at least 32" in line


def test_a_place_that_is_no_file_is_one_line(
    bare_environment: pytest.MonkeyPatch, only_problem: LineOf, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    places = {
        str(tmp_path / "none"): "No such file",
        str(tmp_path): "Is a directory",
        str(tmp_path / "pipe"): "Is not a regular file",
        str(tmp_path / "loop"): "symbolic links",
        "/dev/null": "Is not a regular file",
        f"/{'n' * 300}": "name too long",
        f"{tmp_path}/\x1b[31m\n": "No such file",
    }
    for place, reason in places.items():
        line = only_problem("SECRET_KEY_FILE", place)

        assert line.startswith("(medproc.E003) SECRET_KEY_FILE: ")
        assert reason in line or "not an absolute path" in line, line
        assert line.isprintable()


def test_a_file_that_its_user_cannot_read_is_one_line(
    only_problem: LineOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    # Root reads every file, and the suite may run as root.
    monkeypatch.setattr(os, "open", refuse)

    line = only_problem("SECRET_KEY_FILE", str(tmp_path / "key"))

    assert f"names {tmp_path}/key, which cannot be read: Permission denied." in line


@pytest.mark.parametrize("value", [CANARY, f"postgresql://u:{CANARY}@db/x", f" /{CANARY}"])
def test_a_secret_in_place_of_the_path_is_not_quoted(value: str, only_problem: LineOf) -> None:
    line = only_problem("DATABASE_URL_FILE", value)

    assert "is not an absolute path" in line


def test_a_variable_beside_its_file_is_refused_and_an_empty_one_is_unset(
    bare_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(CANARY)
    bare_environment.setenv("GEMINI_API_KEY_FILE", str(tmp_path / "key"))
    bare_environment.setenv("GEMINI_API_KEY", CANARY)

    _, (problem,) = env.load()
    bare_environment.setenv("GEMINI_API_KEY", "")
    from_file, none = env.load()
    bare_environment.setenv("GEMINI_API_KEY_FILE", "")
    unset, none_either = env.load()

    assert problem.message == (
        "GEMINI_API_KEY_FILE: is set, although GEMINI_API_KEY is set too; set one of the two."
    )
    assert problem.id == "medproc.E009"
    assert (none, none_either) == ((), ())
    assert (str(from_file.GEMINI_API_KEY), unset.GEMINI_API_KEY) == (CANARY, None)


def test_a_variable_that_holds_no_secret_cannot_come_from_a_file(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    bare_environment.setenv("GEMINI_MODEL_FILE", "/run/secrets/model")
    bare_environment.setenv("WORKER_ID_FILE", "/run/secrets/id")
    environment, problems = env.load()

    warnings = env.warnings_of(environment)

    assert problems == ()
    assert {each.variable: each.hint for each in warnings} == {
        "GEMINI_MODEL_FILE": "Do you mean GEMINI_MODEL?",
        "WORKER_ID_FILE": "Do you mean WORKER_ID?",
    }


def test_a_service_that_leaves_root_asks_whether_its_user_reads_the_files(
    bare_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare_environment.setenv("MEDPROC_DATA_DIR", str(tmp_path / "var"))
    bare_environment.setenv("REDIS_URL_FILE", str(tmp_path / "redis"))

    assert tmp_path / "redis" in serving_user.needed_to_serve()
