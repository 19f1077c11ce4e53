# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A wheel for old systems is compiled with an old system's compiler and libraries, and no other."""

import os
import pathlib
import subprocess
import sys

import fakes

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What mmdebstrap unpacks: links to absolute paths, as Debian's packages have them.
MMDEBSTRAP = """#!/bin/bash
folder="$4"  # behind two options and the suite
mkdir -p "$folder"/{usr/bin,usr/lib,lib}
touch "$folder/lib/libdl.so.2" "$folder"/usr/bin/{as,ld,ld.gold,ldd}
ln -s /lib/libdl.so.2 "$folder/usr/lib/libdl.so"
ln -s libdl.so "$folder/usr/lib/beside.so"
printf '#!/bin/bash\\necho old compiler\\n' >"$folder/usr/bin/g++"
chmod +x "$folder/usr/bin/g++"
"""


def run(script: str, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a script, with folders before those of the PATH."""
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    return fakes.run([str(ROOT / "scripts" / script), *arguments], environment)


def program(path: pathlib.Path, text: str) -> pathlib.Path:
    """Writes a stand-in for a program; returns its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path.parent


def test_links_stay_in_the_folder_and_linker_and_assembler_are_this_systems(
    tmp_path: pathlib.Path,
) -> None:
    """Else this system's library would be linked, and the old linker would lack its own here."""
    made = tmp_path / "old system"
    path = str(program(tmp_path / "bin/mmdebstrap", MMDEBSTRAP))
    done = run("make_sysroot.sh", str(made), path=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("old compiler\n")
    assert os.readlink(made / "usr/lib/libdl.so") == "../../lib/libdl.so.2"
    assert os.readlink(made / "usr/lib/beside.so") == "libdl.so"
    assert sorted(path.name for path in (made / "usr/bin").iterdir()) == ["g++", "ldd"]
    again = run("make_sysroot.sh", str(made), path=path)
    assert again.returncode == 1 and "is there already" in again.stderr


def make_compiler(root: pathlib.Path) -> pathlib.Path:
    program(root / "usr/bin/g++", "#!/bin/bash\n")
    return root


def test_sysroot_without_a_compiler_or_with_a_colon_is_refused(tmp_path: pathlib.Path) -> None:
    colon = make_compiler(tmp_path / "a:b")
    for root, says in ((tmp_path, "has no usr/bin/g++ that runs"), (colon, "has a colon")):
        done = run("build_wheel.sh", f"--sysroot={root}")
        assert done.returncode == 2
        assert f"error: --sysroot '{root}' {says}" in done.stderr


def test_bazel_is_told_of_compiler_and_libraries(tmp_path: pathlib.Path) -> None:
    """Bazel's stand-in keeps its arguments and fails: nothing is built."""
    root = make_compiler(tmp_path / "old")
    program(tmp_path / "bazel", f'#!/bin/bash\nprintf "%s\\n" "$@" >{tmp_path}/calls\nexit 1\n')
    # Neither the stock wheel nor patches are looked at.
    program(
        tmp_path / "python3",
        f'#!/bin/bash\n[[ "$1" == */build/*.py ]] || exec {sys.executable} "$@"\n',
    )
    done = run("build_wheel.sh", f"--sysroot={root}", path=str(tmp_path))
    assert done.returncode == 1
    options = (tmp_path / "calls").read_text().splitlines()
    assert f"--repo_env=CC={root}/usr/bin/gcc" in options
    for variable in ("BAZEL_CONLYOPTS", "BAZEL_CXXOPTS", "BAZEL_LINKOPTS"):
        (option,) = (option for option in options if f"={variable}=" in option)
        assert f"=--sysroot={root}" in option
    run("build_wheel.sh", path=str(tmp_path))
    assert "sysroot" not in (tmp_path / "calls").read_text()
