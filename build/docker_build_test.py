# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""scripts/docker_build.sh finds an engine, or says what is missing; the Dockerfile has no fault."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import fakes

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "docker_build.sh"
DOCKERFILE = ROOT / "build" / "Dockerfile"
# What the script calls, besides the engines.
TOOLS = ("basename", "bash", "cat", "dirname", "git", "sed", "timeout")


@pytest.fixture
def bin_folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """All that is on the PATH of the script: no engine yet."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    return folder


def add_engine(folder: pathlib.Path, name: str, has_daemon: bool = True) -> None:
    """Puts a stand-in for an engine on the PATH, which keeps the arguments of builds."""
    answer = "echo 28.2.2" if has_daemon else "echo 'permission denied' >&2; exit 1"
    engine = folder / name
    engine.write_text(
        f"""#!/bin/bash
if [[ "$1" == version ]]; then {answer}; exit; fi
printf '%s\\n' {name} "$@" '' >>"{folder}/calls"
"""
    )
    engine.chmod(0o755)


def run(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the script with nothing but that folder on its PATH."""
    environment = {"PATH": str(folder), "HOME": str(folder)}
    return fakes.run([str(folder / "bash"), str(SCRIPT), *arguments], environment)


def builds(folder: pathlib.Path, *arguments: str) -> list[list[str]]:
    """Runs the script and returns the command line of each build."""
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stderr
    calls = (folder / "calls").read_text().removesuffix("\n\n").split("\n\n")
    return [call.split("\n") for call in calls]


@pytest.mark.parametrize(
    ("engines", "arguments", "chosen"),
    [
        ("docker podman buildah", [], ["docker", "build"]),
        ("buildah", [], ["buildah", "bud", "--layers"]),
        ("docker podman buildah", ["--engine", "podman"], ["podman", "build"]),
        ("docker:no-daemon podman", [], ["podman", "build"]),
    ],
)
def test_the_engine_that_is_asked_for_or_else_the_first_that_works_builds(
    bin_folder: pathlib.Path, engines: str, arguments: list[str], chosen: list[str]
) -> None:
    for engine in engines.split():
        name, _, lacks = engine.partition(":")
        add_engine(bin_folder, name, has_daemon=not lacks)
    (line,) = builds(bin_folder, *arguments)
    assert line[: len(chosen)] == chosen


def test_both_images_have_names_of_their_own(bin_folder: pathlib.Path) -> None:
    add_engine(bin_folder, "docker")
    lines = builds(bin_folder, "--target=all", "--tag=mine:1")
    named = [[line[line.index(option) + 1] for option in ("--target", "--tag")] for line in lines]
    assert named == [["build", "mine:1-build"], ["runtime", "mine:1"]]


def test_base_extra_and_the_engines_own_arguments_are_passed_on(bin_folder: pathlib.Path) -> None:
    add_engine(bin_folder, "podman")
    own = ["--volume", "/a=b:/c", "--tag=of the engine"]
    (line,) = builds(bin_folder, "--base", "b:1", "--extra", "none", "--", *own)
    assert {"BASE=b:1", "EXTRA="} <= set(line)
    assert line[-4:] == [*own, str(ROOT)]
    assert "BASE=docker.io/library/ubuntu:24.04" in builds(bin_folder, "--python", "cp312")[-1]


@pytest.mark.parametrize("arguments", [[], ["--engine", "docker"]])
def test_no_engine_that_works_is_an_error(bin_folder: pathlib.Path, arguments: list[str]) -> None:
    assert run(bin_folder, *arguments).returncode == 1
    add_engine(bin_folder, "docker", has_daemon=False)
    done = run(bin_folder, *arguments)
    assert done.returncode == 1
    assert "permission denied" in done.stderr
    assert not (bin_folder / "calls").exists()


@pytest.mark.parametrize(
    "arguments", [["--target", "slim"], ["--python=cp312", "--base=b"], ["--tag"]], ids=" ".join
)
def test_wrong_argument_builds_nothing(bin_folder: pathlib.Path, arguments: list[str]) -> None:
    add_engine(bin_folder, "docker")
    done = run(bin_folder, *arguments)
    assert done.returncode == 2
    assert arguments[0].partition("=")[0] in done.stderr
    assert not (bin_folder / "calls").exists()


def test_what_git_ignores_is_not_sent_to_the_engine() -> None:
    sent = set((ROOT / ".dockerignore").read_text().split())
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {".git"} <= sent
    for line in ignored:
        name = line.strip("/")
        assert {name, f"**/{name}"} & sent, line


def test_all_that_is_copied_into_the_image_can_be_read_by_its_user() -> None:
    """A clone that is made with umask 077 has files that only their owner reads."""
    _, _, installed = DOCKERFILE.read_text().partition(" AS installed\n")
    copies, found, _ = installed.partition("chmod -R a+rX /opt/tensorflow-multistream\n")
    assert found and "FROM" not in copies
    after = installed.removeprefix(copies)
    assert "cp " in copies and "cp " not in after.partition("FROM")[0]
    assert re.findall("^COPY (.*)$", after, re.MULTILINE) == [
        "--from=installed /opt/tensorflow-multistream /opt/tensorflow-multistream"
    ]


def test_files_of_the_download_step_are_all_that_it_needs(tmp_path: pathlib.Path) -> None:
    """A module more would fail in the image only, where it is not copied yet."""
    (files,) = re.findall(r"^COPY (build/.*) build/$", DOCKERFILE.read_text(), re.MULTILINE)
    for file in files.split():
        shutil.copy(ROOT / file, tmp_path)
    done = fakes.run([sys.executable, str(tmp_path / "stock_wheel.py"), "--help"])
    assert done.returncode == 0, done.stderr
