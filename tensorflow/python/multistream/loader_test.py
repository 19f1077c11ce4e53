# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The loader loads the library that is installed, which finds what is installed beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fakes

FOLDER = Path(__file__).absolute().parent
PACKAGE = Path("tensorflow/python/multistream")
RUNTIME = """
extern "C" int Nvidia();
extern "C" int TFMS_CheckReplacedSymbols(char*, int) { return Nvidia(); }
extern "C" int TFMS_CheckEnvironment(char*, int) { return 0; }
"""


def test_libraries_beside_links_are_found_if_each_installed_file_is_a_link(tmp_path: Path) -> None:
    """So installs uv --link-mode=symlink: each package's files stay in a folder of its cache."""
    kept, installed = tmp_path / "cache", tmp_path / "site-packages"
    (kept / PACKAGE).mkdir(parents=True)
    for name in ("loader.py", "runtime_library.py"):
        shutil.copy(FOLDER / name, kept / PACKAGE)
    for folder in (PACKAGE, *PACKAGE.parents[:-1]):
        (kept / folder / "__init__.py").touch()
    (installed / "nvidia").mkdir(parents=True)
    nvidia = fakes.compile_library(
        installed / "nvidia/libnvidia.so",
        'extern "C" int Nvidia() { return 0; }',
        "-Wl,-soname,libnvidia.so",
    )
    fakes.compile_library(
        kept / "tensorflow/libtensorflow_multistream.so",
        RUNTIME,
        str(nvidia),
        "-Wl,-rpath,$ORIGIN/../nvidia",
    )
    subprocess.run(["cp", "-rs", kept / "tensorflow", installed], check=True)
    code = "from tensorflow.python.multistream import loader; loader.load()"
    done = fakes.run([sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(installed)})
    assert done.returncode == 0, done.stderr
