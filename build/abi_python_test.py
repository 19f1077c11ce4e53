# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Python files take of TensorFlow is found, and what a wheel lacks of it is named."""

import pathlib
import subprocess
import zipfile

import pytest

import abi_python

OURS = """
import tensorflow.python.client.session
from tensorflow.python import tf2
from tensorflow.python.framework import ops, errors
from tensorflow.python.client._native import Session
from tensorflow.python.multistream import loader

try:
    from tensorflow.python.framework import newer
except ImportError:
    newer = None

class Thing:
    def __init__(self, function):
        self._mine = function
        self._mine._theirs(self._mine)

def handle(library):
    return library["_Z6HandlePv"]
"""
MODULES = {
    "tensorflow/python/client/session.py": "",
    "tensorflow/python/client/_native.so": "",
    "tensorflow/python/__init__.py": "",
    "tensorflow/python/tf2.py": "",
    "tensorflow/python/framework/__init__.py": "ops = errors = 1",
    "tensorflow/python/eager/function.py": "def _theirs(): pass",
}


@pytest.fixture
def uses(tmp_path: pathlib.Path) -> abi_python.Uses:
    """What a package takes of TensorFlow."""
    ours = tmp_path / "ours"
    (ours / "testing").mkdir(parents=True)
    (ours / "a.py").write_text(OURS)
    for name in ("a_test.py", "conftest.py", "testing/kit.py"):
        (ours / name).write_text("from tensorflow.python import no")
    return abi_python.uses_of(abi_python.files_of_the_wheel(ours))


def missing(uses: abi_python.Uses, folder: pathlib.Path, modules: dict[str, str]) -> list[str]:
    library = folder / "library.so"
    command = ["g++", "-shared", "-fPIC", "-xc++", "-", "-o", str(library)]
    subprocess.run(command, input="void Handle(void*) {}", text=True, check=True)
    with zipfile.ZipFile(folder / "tensorflow.whl", "w") as archive:
        archive.write(library, "tensorflow/python/lib_common.so")
        for name, text in modules.items():
            archive.writestr(name, text)
    with zipfile.ZipFile(folder / "tensorflow.whl") as archive:
        return abi_python.missing(uses, archive)


def test_a_wheel_that_has_all(uses: abi_python.Uses, tmp_path: pathlib.Path) -> None:
    assert missing(uses, tmp_path, MODULES) == []


@pytest.mark.parametrize(
    ("without", "text", "expected"),
    [
        (
            "tensorflow/python/client/session.py",
            None,
            "missing in Python: tensorflow.python.client.session, for a.py",
        ),
        (
            "tensorflow/python/client/_native.so",
            None,
            "missing in Python: tensorflow.python.client._native.Session, for a.py",
        ),
        (
            "tensorflow/python/framework/__init__.py",
            "ops = old_errors = 1",
            "missing in Python: tensorflow.python.framework.errors, for a.py",
        ),
        (
            "tensorflow/python/eager/function.py",
            "def theirs(): pass",
            "named nowhere in Python: _theirs, for a.py",
        ),
    ],
)
def test_names_what_is_gone(
    uses: abi_python.Uses, tmp_path: pathlib.Path, without: str, text: str | None, expected: str
) -> None:
    modules = {name: of for name, of in MODULES.items() if name != without}
    if text is not None:
        modules[without] = text
    assert missing(uses, tmp_path, modules) == [expected]


def test_functions_that_python_loads_by_name(uses: abi_python.Uses, tmp_path: pathlib.Path) -> None:
    other = abi_python.Uses({}, {}, {**uses.functions, "_Z4GoneNv": "a.py"})
    assert missing(other, tmp_path, MODULES) == ["missing, called by Python: _Z4GoneNv, for a.py"]
