# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lays out TensorFlow's source tree with the multi-stream runtime in it.

    python3 build/source_tree.py --out TREE [--source FOLDER | --sha256 HASH]

Takes TensorFlow's release from a folder, which stays as it is, or downloads its archive; puts the
runtime's sources and BUILD files into the copy, and applies the patches of patches/RELEASE/source.
"""

from __future__ import annotations

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
from collections.abc import Callable

import patch_series
import stock_wheel
from build_error import BuildError, command_line, run_main
from releases import BASE

ROOT = pathlib.Path(__file__).resolve().parent.parent
_FOLDERS = ("tensorflow/core/common_runtime/multistream", "tensorflow/python/multistream")
_VERSION_FILE = "tensorflow/tf_version.bzl"
_REPOSITORIES = "tensorflow/workspace3.bzl"


@dataclasses.dataclass(frozen=True)
class Archive:
    """A release's sources.

    Args:
      url: of the archive that GitHub makes of the release's tag.
      sha256: of that, as Homebrew's formula for TensorFlow and TensorFlow Federated's WORKSPACE
        have it; it could not be computed here.
    """

    url: str
    sha256: str


ARCHIVES = {
    "2.21.0": Archive(
        "https://github.com/tensorflow/tensorflow/archive/refs/tags/v2.21.0.tar.gz",
        "ef3568bb4865d6c1b2564fb5689c19b6b9a5311572cd1f2ff9198636a8520921",
    )
}


@dataclasses.dataclass
class Applied:
    """What a series does to a tree.

    Attributes:
      changed: the changed files' text, by path.
      moved: for each hunk that is elsewhere than its header says, where it is and where that was.
      absent: the files that could not be read.
    """

    changed: dict[str, str] = dataclasses.field(default_factory=dict)
    moved: list[str] = dataclasses.field(default_factory=list)
    absent: list[str] = dataclasses.field(default_factory=list)


def check_release(tree: pathlib.Path, release: str) -> None:
    """Checks that a folder has TensorFlow's sources, of the right release.

    Args:
      tree: the folder.
      release: such as "2.21.0".

    Raises:
      BuildError: it has none, or those of another release.
    """
    file = tree / _VERSION_FILE
    if not file.is_file():
        raise BuildError(
            f"{tree} is not TensorFlow's source tree: it has no {_VERSION_FILE}.\n"
            f"Name the folder that the archive of TensorFlow {release} unpacks to."
        )
    found = re.search(r'^TF_VERSION = "(.+)"', file.read_text(), flags=re.MULTILINE)
    version = found[1] if found else "of no version"
    if version != release:
        raise BuildError(
            f"{tree} is TensorFlow {version}, and the patches are for {release}.\n"
            f"Get that one: {ARCHIVES[release].url}"
        )


def apply_moved(file_patch: patch_series.FilePatch, text: str) -> tuple[str, list[str]]:
    """Applies one patch to one file, whose lines may have moved.

    A hunk's lines must all be there, and either where its header says or at one place only.

    Args:
      file_patch: the changes.
      text: the file as it is.

    Returns:
      The file as changed, and for each moved hunk a line that says so.

    Raises:
      BuildError: a hunk's lines are not there, or at more than one place.
    """
    lines = text.splitlines(keepends=True)
    hunks = []
    moved = []
    for hunk in file_patch.hunks:
        places = patch_series.places(hunk, lines)
        if hunk.first_line not in places and len(places) == 1:
            moved.append(f"{file_patch.path}: line {places[0]}, not {hunk.first_line}")
            hunks.append(dataclasses.replace(hunk, first_line=places[0]))
        else:
            hunks.append(hunk)
    placed = dataclasses.replace(file_patch, hunks=tuple(hunks))
    return patch_series.apply_file_patch(placed, text), moved


def apply_series(series: pathlib.Path, read: Callable[[str], str | None]) -> Applied:
    """Applies a series of source patches, in memory.

    Args:
      series: the folder.
      read: gives a file's text by its path in TensorFlow's tree; None if it does not have it.

    Returns:
      What changes. Files that `read` does not have are left out.

    Raises:
      BuildError: a patch does not apply; names it, the file and the hunk.
    """
    result = Applied()
    for name in patch_series.read_series(series):
        for file_patch in patch_series.parse_patch(name, (series / name).read_text()):
            path = file_patch.path
            text = result.changed.get(path, None) or read(path)
            if text is None:
                if path not in result.absent:
                    result.absent.append(path)
                continue
            result.changed[path], moved = apply_moved(file_patch, text)
            result.moved += moved
    return result


def read_from(tree: pathlib.Path) -> Callable[[str], str | None]:
    """Returns what reads a tree's files, for apply_series."""

    def read(path: str) -> str | None:
        file = tree / path
        return file.read_bytes().decode() if file.is_file() else None

    return read


def read_from_wheel(wheel: zipfile.ZipFile) -> Callable[[str], str | None]:
    """Returns what reads those of a tree's files that a wheel has as they are, for apply_series."""

    def read(path: str) -> str | None:
        name = f"tensorflow/include/{path.removeprefix('third_party/xla/')}"
        # The build makes others' __init__.py.
        if path.endswith(".py") and not path.endswith("__init__.py"):
            name = path
        return wheel.read(name).decode() if name in wheel.NameToInfo else None

    return read


def check_texts(series: pathlib.Path, read: Callable[[str], str | None]) -> list[str]:
    """Compares files with the texts with which a series was made.

    Args:
      series: the folder; its checked.csv has each file's SHA-256.
      read: as for apply_series.

    Returns:
      The files that `read` has, with another text.

    Raises:
      BuildError: checked.csv does not list the files that the series changes.
    """
    table = series / "checked.csv"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    listed = {row["file"]: row["sha256"] for row in rows}
    changed = {
        file_patch.path
        for name in patch_series.read_series(series)
        for file_patch in patch_series.parse_patch(name, (series / name).read_text())
    }
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


def apply_to(tree: pathlib.Path, release: str) -> Applied:
    """Applies a release's source patches to its tree, in memory.

    Args:
      tree: TensorFlow's sources.
      release: theirs.

    Returns:
      What changes.

    Raises:
      BuildError: a patch does not apply, or a file is missing.
    """
    try:
        applied = apply_series(ROOT / "patches" / release / "source", read_from(tree))
    except BuildError as error:
        raise BuildError(
            f"{error}\nIs {tree} TensorFlow {release} as it was released, without other patches? "
            f"It is at {ARCHIVES[release].url}"
        ) from error
    if applied.absent:
        raise BuildError(
            f"{tree} has no {applied.absent[0]}, which a patch changes.\n"
            "Take the whole archive of the release."
        )
    return applied


def fetch(release: str, cache: pathlib.Path, sha256: str = "") -> pathlib.Path:
    """Downloads a release's archive, or finds it in the cache.

    Args:
      release: such as "2.21.0".
      cache: a folder, which is made.
      sha256: of the archive, if it is not the known one.

    Returns:
      The archive, whose hash is right.

    Raises:
      BuildError: it cannot be downloaded, or its hash is wrong.
    """
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
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != expected:
        archive.unlink()
        raise BuildError(
            f"{known.url} has the SHA-256 {found}, not {expected}: it is not the release.\n"
            "Try again. If you know the archive for right, say so: --sha256."
        )
    return archive


def unpack(archive: pathlib.Path, out: pathlib.Path) -> None:
    """Unpacks an archive, without its top folder.

    Args:
      archive: a .tar.gz with one folder at its top.
      out: a folder, which is made.

    Raises:
      BuildError: it is no such archive.
    """
    out.mkdir(parents=True, exist_ok=True)
    result = subprocess.run(
        ["tar", "--extract", f"--file={archive}", "--strip-components=1", f"--directory={out}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise BuildError(f"{archive} cannot be unpacked: {result.stderr.strip()}")


def lay_out(tree: pathlib.Path, release: str) -> Applied:
    """Turns TensorFlow's sources into those with the runtime.

    Args:
      tree: a copy of TensorFlow's sources; it is changed.
      release: theirs.

    Returns:
      What the patches have changed.

    Raises:
      BuildError: a patch does not apply, or the tree is not as expected. Nothing has changed then.
    """
    applied = apply_to(tree, release)
    workspace = (read_from(tree)(_REPOSITORIES)) or ""
    xla = re.search(r'name = "(\w+)",\s*(?:rel)?path = "third_party/xla"', workspace)
    if xla is None:
        raise BuildError(
            f"{tree}: {_REPOSITORIES} does not say which repository third_party/xla is."
        )
    for path, text in applied.changed.items():
        (tree / path).write_bytes(text.encode())
    for folder in _FOLDERS:
        _copy_ours(ROOT / folder, tree / folder)
    ours = ROOT / "build" / "source"
    for name, place in (
        ("build.BUILD", "build/BUILD.bazel"),
        ("tensorflow.bzl", "build/tensorflow.bzl"),
        ("python.BUILD", "tensorflow/python/multistream/BUILD"),
        ("python/exports.py", "tensorflow/python/multistream/exports.py"),
        ("python/runtime_library.py", "tensorflow/python/multistream/runtime_library.py"),
    ):
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ours / name, tree / place)
    (tree / "build/xla.bzl").write_text(
        f'"""Which repository third_party/xla is."""\n\nXLA = "@{xla[1]}"\n'
    )
    return applied


def _copy_ours(source: pathlib.Path, place: pathlib.Path) -> None:
    is_python = source.name == "multistream" and source.parent.name == "python"
    tests = ["testing", "node_level", "several_gpus", "workers", "conftest.py", "*_test.py"]
    ignored = ["__pycache__", *tests] if is_python else []
    shutil.copytree(source, place, ignore=shutil.ignore_patterns(*ignored), dirs_exist_ok=True)


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
        shutil.copytree(
            options.source,
            out,
            symlinks=True,
            ignore=shutil.ignore_patterns(".git"),
            dirs_exist_ok=True,
        )
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
