# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lays out TensorFlow's source tree with the multi-stream runtime in it.

    python3 build/source_tree.py --out TREE [--source FOLDER | --sha256 HASH]

Takes TensorFlow's release from a folder, which stays as it is, or downloads its archive; puts the
runtime's sources and BUILD files into the copy, and applies the patches of patches/RELEASE/source.
"""

import ast
import csv
import dataclasses
import hashlib
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.request
import zipfile

import patch_series
import stock_wheel
from build_error import BuildError, command_line, run_main
from releases import BASE

ROOT = pathlib.Path(__file__).resolve().parent.parent
_PYTHON = "tensorflow/python/multistream"
_FOLDERS = ("tensorflow/core/common_runtime/multistream", _PYTHON)
_API = "tensorflow/_api/v2/cuda/__init__.py"
_VERSION_FILE = "tensorflow/tf_version.bzl"
_REPOSITORIES = "tensorflow/workspace3.bzl"


@dataclasses.dataclass(frozen=True)
class Archive:
    """A release's sources."""

    url: str  # of the archive that GitHub makes of the release's tag
    # Of the archive, by Homebrew's formula and TensorFlow Federated's WORKSPACE, not computed here.
    sha256: str


ARCHIVES = {
    "2.21.0": Archive(
        "https://github.com/tensorflow/tensorflow/archive/refs/tags/v2.21.0.tar.gz",
        "ef3568bb4865d6c1b2564fb5689c19b6b9a5311572cd1f2ff9198636a8520921",
    )
}


def check_release(tree: pathlib.Path, release: str) -> None:
    """Checks that a folder has TensorFlow's sources, of the right release."""
    file = tree / _VERSION_FILE
    if not file.is_file():
        raise BuildError(
            f"{tree} is not TensorFlow's source tree: it has no {_VERSION_FILE}.\n"
            f"Name the folder that the archive of TensorFlow {release} unpacks to."
        )
    found = re.search(r'^TF_VERSION = "(.+)"', file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    version = found[1] if found else "of no version"
    if version != release:
        raise BuildError(
            f"{tree} is TensorFlow {version}, and the patches are for {release}.\n"
            f"Get that one: {ARCHIVES[release].url}"
        )


def read_from(tree: pathlib.Path) -> patch_series.Read:
    """Returns what reads a tree's files."""

    def read(path: str) -> str | None:
        file = tree / path
        return file.read_bytes().decode() if file.is_file() else None

    return read


def read_from_wheel(wheel: zipfile.ZipFile) -> patch_series.Read:
    """Returns what reads those of a tree's files that a wheel has as they are."""

    def read(path: str) -> str | None:
        name = f"tensorflow/include/{path.removeprefix('third_party/xla/')}"
        # The build makes others' __init__.py.
        if path.endswith(".py") and not path.endswith("__init__.py"):
            name = path
        return patch_series.text_in(wheel)(name)

    return read


def check_texts(series: pathlib.Path, read: patch_series.Read) -> list[str]:
    """Lists the files whose text is not the one that a series was made with (its checked.csv)."""
    table = series / "checked.csv"
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    listed = {row["file"]: row["sha256"] for row in rows}
    changed = patch_series.apply_patches(series, lambda path: None).absent.keys()
    if odd := sorted(changed ^ listed.keys()):
        raise BuildError(
            f"{table}: {odd[0]} is {'not in it' if odd[0] in changed else 'changed by no patch'}.\n"
            "It has a row for each file that the series changes, with the SHA-256 of its own text."
        )
    texts = {path: read(path) for path in sorted(listed)}
    return [
        path
        for path, text in texts.items()
        if text is not None and hashlib.sha256(text.encode()).hexdigest() != listed[path]
    ]


def apply_to(tree: pathlib.Path, release: str) -> patch_series.Applied:
    """Applies a release's source patches to its tree, in memory."""
    series = ROOT / "patches" / release / "source"
    try:
        applied = patch_series.apply_patches(series, read_from(tree), may_move=True)
    except BuildError as error:
        raise BuildError(
            f"{error}\nIs {tree} TensorFlow {release} as it was released, without other patches? "
            f"It is at {ARCHIVES[release].url}"
        ) from error
    for path in applied.absent:
        raise BuildError(
            f"{tree} has no {path}, which a patch changes.\nTake the whole archive of the release."
        )
    return applied


def fetch(release: str, cache: pathlib.Path, sha256: str = "") -> pathlib.Path:
    """Downloads a release's archive, or finds it in the cache; `sha256` if it is not known."""
    known = ARCHIVES[release]
    expected = sha256 or known.sha256
    archive = cache / "sources" / expected / pathlib.PurePosixPath(known.url).name
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        partial = archive.with_suffix(".partial")
        try:
            with (
                urllib.request.urlopen(known.url, timeout=60) as answer,
                partial.open("wb") as file,
            ):
                shutil.copyfileobj(answer, file)
        except (urllib.error.URLError, OSError) as error:
            partial.unlink(missing_ok=True)
            raise BuildError(
                f"{known.url} cannot be downloaded: {error}.\n"
                "Download and unpack it where there is a network, and name the folder: --source."
            ) from error
        partial.rename(archive)
    found = stock_wheel.sha256_of(archive)
    if found != expected:
        archive.unlink()
        raise BuildError(
            f"{known.url} has the SHA-256 {found}, not {expected}: it is not the release.\n"
            "Try again. If you know the archive for right, say so: --sha256."
        )
    return archive


def unpack(archive: pathlib.Path, out: pathlib.Path) -> None:
    """Unpacks a .tar.gz with one folder at its top, without that folder."""
    out.mkdir(parents=True, exist_ok=True)
    command = ["tar", "--extract", "--strip-components=1", f"--file={archive}"]
    command.append(f"--directory={out}")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BuildError(f"{archive} cannot be unpacked: {result.stderr.strip()}")


def exported_names(root: pathlib.Path) -> dict[str, str]:
    """Reads from the wheel's module of the API where each name of tf.cuda is defined."""
    return {
        name.asname or name.name: f"{statement.module}.{name.name}"
        for statement in ast.parse((root / _API).read_text(encoding="utf-8")).body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }


def exports(root: pathlib.Path) -> str:
    """Writes the module of which TensorFlow's API generator makes tf.cuda and tf.stream."""
    names = {f"cuda.{name}": where for name, where in exported_names(root).items()}
    names["stream"] = f"{_PYTHON.replace('/', '.')}.scopes.streams.stream"
    lines = ['"""What TensorFlow\'s API generator makes tf.cuda and tf.stream of."""', ""]
    lines += ["from {} import {}".format(*where.rsplit(".", 1)) for where in names.values()]
    lines += ["from tensorflow.python.util.tf_export import tf_export", ""]
    lines += [f'tf_export("{name}")({where.rpartition(".")[2]})' for name, where in names.items()]
    return "\n".join(lines) + "\n"


def lay_out(tree: pathlib.Path, release: str) -> patch_series.Applied:
    """Turns a copy of TensorFlow's sources into those with the runtime, or changes none of it."""
    applied = apply_to(tree, release)
    workspace = (read_from(tree)(_REPOSITORIES)) or ""
    xla = re.search(r'name = "(\w+)",\s*(?:rel)?path = "third_party/xla"', workspace)
    if xla is None:
        raise BuildError(
            f"{tree}: {_REPOSITORIES} does not say which repository third_party/xla is."
        )
    tests = ["testing", "node_level", "several_gpus", "workers", "conftest.py", "*_test.py"]
    for folder in _FOLDERS:
        ignored = ["__pycache__", *tests] if folder == _PYTHON else []
        ignore = shutil.ignore_patterns(*ignored)
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignore, dirs_exist_ok=True)
    ours = ROOT / "build" / "source"
    for path, text in {
        **applied.changed,
        "build/BUILD.bazel": 'exports_files(["tensorflow.bzl", "xla.bzl"])\n',
        "build/tensorflow.bzl": (ours / "tensorflow.bzl").read_text(encoding="utf-8"),
        "build/xla.bzl": f'"""Which repository third_party/xla is."""\n\nXLA = "@{xla[1]}"\n',
        f"{_PYTHON}/BUILD": (ours / "python.BUILD").read_text(encoding="utf-8"),
        f"{_PYTHON}/exports.py": exports(ROOT),
        f"{_PYTHON}/runtime_library.py": '"""Which library has the runtime: one of TensorFlow\'s '
        'own."""\n\nNAME = "libtensorflow_cc.so.2"\n',
    }.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(text.encode())
    return applied


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--source", type=pathlib.Path, help="unpacked sources [downloaded]")
    parser.add_argument("--sha256", default="", help="of the archive to download [the known one]")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a new folder")
    options = parser.parse_args()
    out = options.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BuildError(f"{out} is there already.\nName a new folder.")
    if options.source is not None:
        check_release(options.source, BASE)
        apply_to(options.source, BASE)  # before the copy, which takes long
        ignore = shutil.ignore_patterns(".git")
        shutil.copytree(options.source, out, symlinks=True, ignore=ignore, dirs_exist_ok=True)
    else:
        unpack(fetch(BASE, stock_wheel.cache_folder(), options.sha256), out)
        check_release(out, BASE)
    applied = lay_out(out, BASE)
    for line in applied.moved:
        print(f"moved: {line}")
    print(
        f"{out}: TensorFlow {BASE} with the runtime; patches changed {len(applied.changed)} files"
    )


if __name__ == "__main__":
    run_main(main)
