# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of scripts/common.sh do what their comments say, whatever the machine has."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

import fakes
from releases import BASE

ROOT = pathlib.Path(__file__).resolve().parent.parent
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
# python3 whose `-m venv FOLDER` makes an environment at once: one with, or one without pip.
PYTHON = f"""#!/bin/bash
if [[ "$1 $2" != "-m venv" ]]; then exec {sys.executable} "$@"; fi
mkdir -p "$3/bin"
printf '#!/bin/bash\\n[[ "$2" != pip ]] || exit 0\\nexec {sys.executable} "$@"\\n' >"$3/bin/python"
chmod +x "$3/bin/python"
echo made
"""


def bash(
    code: str, *arguments: str, folder: pathlib.Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs code behind the functions, with these arguments, in a folder."""
    begin = f'cd "{folder or ROOT}"; source "{ROOT}/scripts/common.sh"\n'
    return fakes.run(["bash", "-c", begin + code, "test", *arguments], {**os.environ, **variables})


def printed(code: str, *arguments: str, **variables: str) -> str:
    done = bash(code, *arguments, folder=None, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_relative_cache_is_one_folder_for_all_programs(tmp_path: pathlib.Path) -> None:
    code = """cd / && python3 -c 'import os; print(os.environ["TFMS_CACHE"])'"""
    done = bash(code, folder=tmp_path, TFMS_CACHE="a cache")
    assert done.stdout.strip() == str(tmp_path / "a cache")
    assert printed(code, TFMS_CACHE="/a") == "/a"


def test_the_newest_wheel_of_the_usual_release_and_of_that_python_is_taken(
    tmp_path: pathlib.Path,
) -> None:
    """The first by name would be an older release's, or one of an older system's libraries."""
    newest = f"tensorflow-{BASE}+multistream.1-cp312-cp312-manylinux_2_34_x86_64.whl"
    wheels = [
        f"tensorflow-{BASE}+multistream.1-cp312-cp312-manylinux_2_28_x86_64.whl",
        f"tensorflow-{BASE}+multistream.1-cp312-cp312-manylinux_2_39_x86_64.whl",
        newest,
        "tensorflow-2.18.1+multistream.1-cp312-cp312-manylinux_2_34_x86_64.whl",
        f"tensorflow-{BASE}+multistream.1-cp311-cp311-manylinux_2_34_x86_64.whl",
    ]
    for time, name in enumerate(wheels):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    assert printed('newest_wheel cp312 "$1"', str(tmp_path)) == str(tmp_path / newest)
    assert not printed('newest_wheel cp310 "$1"', str(tmp_path))


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "interrupted"])
def test_an_environment_without_pip_is_made_again(tmp_path: pathlib.Path, whole: bool) -> None:
    """`python -m venv` makes the Python first: it may be interrupted before pip is there."""
    (tmp_path / "python3").write_text(PYTHON)
    (tmp_path / "python3").chmod(0o755)
    venv = tmp_path / "venv"
    subprocess.run([tmp_path / "python3", "-m", "venv", venv], check=True)
    if not whole:
        python = venv / "bin" / "python"
        python.write_text(python.read_text().replace("exit 0", "exit 1"))
    code = 'VENV="$1"; make_venv "$2"; has_venv'
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert printed(code, str(venv), TAG, PATH=path) == ("" if whole else "made")


def test_all_commands_have_to_be_there() -> None:
    assert bash("has_commands bash sed").returncode == 0
    assert bash("has_commands bash no-such-command || exit 3").returncode == 3
    assert bash("has_commands no-such-command bash || exit 3").returncode == 3


def test_the_last_line_is_printed_and_all_are_shown_wherever_stderr_leads(
    tmp_path: pathlib.Path,
) -> None:
    code = 'echo before >&2; built="$(last_line printf "one\\ntwo\\n")"; echo "<${built}>"'
    log = tmp_path / "log"
    assert printed(f'exec 2>"$1"\n{code}', str(log)) == "<two>"
    assert log.read_text() == "before\none\ntwo\n"
    here, there = socket.socketpair()
    with here, there:
        command = ["bash", "-c", f'source "{ROOT}/scripts/common.sh"\n{code}']
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=there.fileno(), timeout=60, check=False
        )
        there.close()
        with here.makefile("rb") as shown:
            assert (done.returncode, done.stdout) == (0, b"<two>\n")
            assert shown.read() == b"before\none\ntwo\n"
    assert bash('built="$(last_line false)"').returncode == 1
