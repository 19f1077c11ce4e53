# SPDX-FileCopyrightText: 2026 The Multi-Stream TensorFlow Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that TensorFlow's pages print for its wheel work here."""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "build_pip_package.sh"


def run(program: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_wheel_is_copied_and_its_path_printed(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "build_pip_package"
    program.symlink_to(SCRIPT)
    wheels = tmp_path / "build_pip_package.runfiles/tensorflow_multistream/build/wheel"
    wheels.mkdir(parents=True)
    (wheels / "a.whl").write_text("wheel")
    (wheels / "a.whl").chmod(0o444)
    for _ in range(2):  # the second time over the first one's
        done = run(program, str(tmp_path / "out"))
        assert done.stdout == f"{tmp_path}/out/a.whl\n", done.stderr
    assert (tmp_path / "out/a.whl").read_text() == "wheel"


def test_command_without_a_folder_is_refused() -> None:
    for arguments in ((), ("a", "b"), ("--help",)):
        done = run(SCRIPT, *arguments)
        assert done.returncode == 2
        assert "usage:" in done.stderr


def test_config_opt_is_defined() -> None:
    assert "\nbuild:opt " in (HERE.parents[2] / ".bazelrc").read_text()
