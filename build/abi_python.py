# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What our Python files take of TensorFlow's modules and libraries, and whether a wheel has it.

Nothing is imported: modules are looked up in the wheel, and names in their text. What a file
imports inside a `try` has something in its place.
"""

import ast
import dataclasses
import pathlib
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator

import elf

_FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tensorflow" / "python" / "multistream"
_OURS = "tensorflow.python.multistream"
_NAME = re.compile(r"[A-Za-z_]\w*")
_PRIVATE = re.compile(r"_[a-z]\w*")  # not _Z..., nor __init__
_MANGLED = re.compile(r"_ZN?K?\d\w+")
# Where functions are that Python loads by name.
_LIBRARY = re.compile(r"tensorflow/python/[^/]+\.so")


@dataclasses.dataclass(frozen=True)
class Uses:
    """What files take of TensorFlow; each with one of the files that takes it."""

    imports: dict[tuple[str, str], str]  # module, and name in it or ""
    private: dict[str, str]  # attributes of TensorFlow's objects
    functions: dict[str, str]  # mangled names


def files_of_the_wheel(folder: pathlib.Path = _FOLDER) -> list[pathlib.Path]:
    """Lists our Python files, without those of tests."""
    return [
        file
        for file in sorted(folder.rglob("*.py"))
        if not file.stem.endswith("_test")
        and file.name != "conftest.py"
        and "testing" not in file.relative_to(folder).parts
    ]


def uses_of(files: Iterable[pathlib.Path]) -> Uses:
    """Reads our Python files."""
    trees = {file.name: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    own = {name for tree in trees.values() for name in _defined(tree)}
    uses = Uses({}, {}, {})
    for file, tree in trees.items():
        for module, name in _imports(tree):
            if _is_theirs(module) and not f"{module}.{name}".startswith(_OURS):
                uses.imports.setdefault((module, name), file)
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(attr=name) if _PRIVATE.fullmatch(name) and name not in own:
                    uses.private.setdefault(name, file)
                case ast.Constant(value=str(text)) if _MANGLED.fullmatch(text):
                    uses.functions.setdefault(text, file)
    return uses


def missing(uses: Uses, wheel: zipfile.ZipFile) -> list[str]:
    """Says what of that a wheel lacks."""
    lines = [
        f"missing in Python: {module}{name and '.' + name}, for {file}"
        for (module, name), file in sorted(uses.imports.items())
        if not _has(wheel, module, name)
    ]
    left = set(uses.private)
    for member in wheel.namelist():
        if left and member.startswith("tensorflow/python/") and member.endswith(".py"):
            left -= set(_NAME.findall(wheel.read(member).decode(errors="replace")))
    lines += [f"named nowhere in Python: {name}, for {uses.private[name]}" for name in sorted(left)]
    return lines + _missing_functions(uses, wheel)


def _missing_functions(uses: Uses, wheel: zipfile.ZipFile) -> list[str]:
    left = set(uses.functions)
    with tempfile.TemporaryDirectory() as folder:
        for member in filter(_LIBRARY.fullmatch, wheel.namelist()):
            if left:
                file = pathlib.Path(wheel.extract(member, folder))
                for words in elf.readelf(file, "--dyn-syms"):
                    if (symbol := elf.global_symbol(words)) and symbol[1]:
                        left.discard(symbol[0])
    return [
        f"missing, called by Python: {name}, for {uses.functions[name]}" for name in sorted(left)
    ]


def _is_theirs(module: str) -> bool:
    return f"{module}.".startswith("tensorflow.")


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each module that a file imports, and the name in it or ""."""
    for node in _outside_try(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def _outside_try(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of a `try` that something else takes the place of."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.Try):
            yield node
            yield from _outside_try(node)


def _defined(tree: ast.AST) -> Iterator[str]:
    """The names that a file gives to its own functions, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # of __slots__, and of structures of ctypes


def _has(wheel: zipfile.ZipFile, module: str, name: str) -> bool:
    path = module.replace(".", "/")
    texts = [file for file in (f"{path}.py", f"{path}/__init__.py") if file in wheel.NameToInfo]
    if not texts:
        return any(member.startswith(f"{path}.") for member in wheel.NameToInfo)  # of C++
    if not name or _has_file(wheel, f"{path}/{name}"):
        return True
    return any(name in _NAME.findall(wheel.read(text).decode(errors="replace")) for text in texts)


def _has_file(wheel: zipfile.ZipFile, path: str) -> bool:
    return f"{path}.py" in wheel.NameToInfo or f"{path}/__init__.py" in wheel.NameToInfo
