# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""A wheel for old systems is compiled with an old system's compiler and libraries, and no other."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What mmdebstrap unpacks: links to absolute paths, as Debian's packages have them.
MMDEBSTRAP = """#!/bin/bash
printf '%s\\n' "$@" >"{calls}"
folder="$4"  # behind two options and the suite
mkdir -p "$folder"/{{usr/bin,usr/lib,lib}}
touch "$folder/lib/libdl.so.2" "$folder"/usr/bin/{{as,ld,ld.gold,ldd}}
ln -s /lib/libdl.so.2 "$folder/usr/lib/libdl.so"
ln -s libdl.so "$folder/usr/lib/beside.so"
printf '#!/bin/bash\\necho old compiler\\n' >"$folder/usr/bin/g++"
chmod +x "$folder/usr/bin/g++"
exit {status}
"""


def run(script: str, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a script, with folders before those of the PATH."""
    return subprocess.run(
        [str(ROOT / "scripts" / script), *arguments],
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def mmdebstrap(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a stand-in for mmdebstrap, which keeps its arguments in `calls`."""
    return fake(tmp_path, 0)


def fake(folder: pathlib.Path, status: int) -> pathlib.Path:
    bin_folder = folder / f"bin{status}"
    bin_folder.mkdir()
    program = bin_folder / "mmdebstrap"
    program.write_text(MMDEBSTRAP.format(calls=bin_folder / "calls", status=status))
    program.chmod(0o755)
    return bin_folder


def test_links_stay_in_the_folder(tmp_path: pathlib.Path, mmdebstrap: pathlib.Path) -> None:
    """One to an absolute path would be followed to this system's library."""
    made = tmp_path / "old system"
    done = run("make_sysroot.sh", str(made), path=str(mmdebstrap))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("old compiler\n")
    assert os.readlink(made / "usr/lib/libdl.so") == "../../lib/libdl.so.2"
    assert os.readlink(made / "usr/lib/beside.so") == "libdl.so"


def test_linker_and_assembler_are_this_systems(
    tmp_path: pathlib.Path, mmdebstrap: pathlib.Path
) -> None:
    """Those of the old one do not find their libraries here."""
    made = tmp_path / "made"
    assert run("make_sysroot.sh", str(made), path=str(mmdebstrap)).returncode == 0
    assert sorted(path.name for path in (made / "usr/bin").iterdir()) == ["g++", "ldd"]


def test_suite_and_mirror_are_passed_on(tmp_path: pathlib.Path, mmdebstrap: pathlib.Path) -> None:
    made = str(tmp_path / "made")
    assert run("make_sysroot.sh", made, path=str(mmdebstrap)).returncode == 0
    assert (mmdebstrap / "calls").read_text().split() == [
        *("--variant=extract", "--include=g++", "bullseye", made)
    ]
    shutil.rmtree(made)
    arguments = ["--suite=bookworm", "--mirror", "http://mirror", made]
    assert run("make_sysroot.sh", *arguments, path=str(mmdebstrap)).returncode == 0
    assert (mmdebstrap / "calls").read_text().split()[2:] == ["bookworm", made, "http://mirror"]


def test_folder_that_is_there_is_left_alone(
    tmp_path: pathlib.Path, mmdebstrap: pathlib.Path
) -> None:
    done = run("make_sysroot.sh", str(tmp_path), path=str(mmdebstrap))
    assert done.returncode == 1
    assert f"error: {tmp_path} is there already\n" in done.stderr
    assert not (mmdebstrap / "calls").exists()


def test_missing_mmdebstrap_says_what_to_install(tmp_path: pathlib.Path) -> None:
    for tool in ("basename", "bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    done = subprocess.run(
        [str(tmp_path / "bash"), str(ROOT / "scripts/make_sysroot.sh"), str(tmp_path / "made")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "error: mmdebstrap is not on the PATH\nInstall it: apt-get install" in done.stderr


def test_failed_mmdebstrap_is_an_error(tmp_path: pathlib.Path) -> None:
    done = run("make_sysroot.sh", str(tmp_path / "made"), path=str(fake(tmp_path, 25)))
    assert done.returncode == 25
    assert 'in stage "packages of bullseye"' in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "error: no folder\n"),
        (["a", "b"], "error: a second folder 'b'\n"),
        (["--suite"], "error: --suite needs a value\n"),
    ],
)
def test_wrong_argument_is_named(arguments: list[str], said: str) -> None:
    done = run("make_sysroot.sh", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def make_compiler(root: pathlib.Path) -> pathlib.Path:
    compiler = root / "usr/bin/g++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/bash\n")
    compiler.chmod(0o755)
    return root


def test_sysroot_without_a_compiler_is_refused(tmp_path: pathlib.Path) -> None:
    done = run("build_wheel.sh", "--sysroot", str(tmp_path))
    assert done.returncode == 2
    assert f"error: --sysroot '{tmp_path}' has no usr/bin/g++ that runs\n" in done.stderr
    assert "scripts/make_sysroot.sh FOLDER" in done.stderr


def test_sysroot_with_a_colon_is_refused(tmp_path: pathlib.Path) -> None:
    done = run("build_wheel.sh", f"--sysroot={make_compiler(tmp_path / 'a:b')}")
    assert done.returncode == 2
    assert "a:b' has a colon in its path\n" in done.stderr


def test_bazel_is_told_of_compiler_and_libraries(tmp_path: pathlib.Path) -> None:
    """Bazel's stand-in keeps its arguments and fails: nothing is built."""
    root = make_compiler(tmp_path / "old")
    bazel = tmp_path / "bazel"
    bazel.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" >{tmp_path}/calls\nexit 1\n')
    bazel.chmod(0o755)
    # Neither the stock wheel nor patches are looked at.
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/bash\n[[ "$1" == */build/*.py ]] || exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = run("build_wheel.sh", f"--sysroot={root}", path=str(tmp_path))
    assert done.returncode == 1
    options = (tmp_path / "calls").read_text().splitlines()
    assert f"--repo_env=CC={root}/usr/bin/gcc" in options
    for variable in ("BAZEL_CONLYOPTS", "BAZEL_CXXOPTS", "BAZEL_LINKOPTS"):
        (option,) = (option for option in options if f"={variable}=" in option)
        assert f"=--sysroot={root}" in option
    run("build_wheel.sh", path=str(tmp_path))
    assert "sysroot" not in (tmp_path / "calls").read_text()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
