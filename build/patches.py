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
"""Keeps the patches of TensorFlow's files, and what the runtime needs of its libraries.

scripts/patches.py check                                does every patch apply, exactly?
scripts/patches.py edit PATCH FOLDER                    its files, before and after it, to change
scripts/patches.py refresh PATCH FOLDER                 the patch made again from them
scripts/patches.py new PATCH FOLDER FILE... --says TEXT a patch to be, of these files of the wheel
scripts/patches.py drop PATCH                           without it, if the others still apply
scripts/patches.py port --to 2.22.0 [--wheel X.whl]     for another release, as far as they apply
scripts/patches.py abi [--write]                        what the built runtime needs of TensorFlow
scripts/patches.py check-abi --wheel X.whl              does another wheel have it?
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import check_patches
import patch_porting
import patch_series
import stock_wheel
import tensorflow_abi
from build_error import BuildError, command_line, run_main

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEFORE, AFTER = "before", "after"


def folder_of(release: str) -> pathlib.Path:
    """Returns the folder of a release's patches."""
    return ROOT / "patches" / release


def description_of(text: str) -> str:
    """Returns what a patch says before its first change."""
    return text[: text.index("--- a/")]


def series_of(folder: pathlib.Path) -> list[tuple[str, str, list[patch_series.FilePatch]]]:
    """Reads a series: name, description and changes of each patch, in order."""
    patches = []
    for name in patch_series.read_series(folder):
        text = (folder / name).read_text()
        patches.append((name, description_of(text), patch_series.parse_patch(name, text)))
    return patches


def stock_texts(wheel: zipfile.ZipFile, folder: pathlib.Path, before: str) -> dict[str, str]:
    """The files of a wheel with the patches that come before one.

    Args:
      wheel: the stock wheel.
      folder: the series.
      before: name of the patch; all of them count where the series does not have it.

    Returns:
      Text by path, of the files that those patches change.
    """
    texts: dict[str, str] = {}
    for name, _, changes in series_of(folder):
        if name == before:
            break
        for change in changes:
            text = texts.get(change.path) or wheel.read(change.path).decode()
            texts[change.path] = patch_series.apply_file_patch(change, text)
    return texts


def write_files(folder: pathlib.Path, texts: dict[str, str]) -> None:
    """Writes files, with the folders that they are in."""
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def fetch(tag: str) -> pathlib.Path:
    """Returns the stock wheel of this release."""
    return stock_wheel.fetch(tag, stock_wheel.cache_folder())


def check(options: argparse.Namespace) -> None:
    """`check`."""
    wheel = fetch(options.python)
    for folder in sorted(path.parent for path in (ROOT / "patches").glob("*/series")):
        if folder.name != stock_wheel.VERSION:
            raise BuildError(
                f"{folder} is of a release that has no pinned wheel.\n"
                f"There is {stock_wheel.VERSION} (build/stock_wheel.py)."
            )
        changed = check_patches.check(wheel, folder)
        count = len(patch_series.read_series(folder))
        print(f"{folder.name}: {count} patches apply to {wheel.name}: {len(changed)} files change")


def edit(options: argparse.Namespace) -> None:
    """`edit`, and `new`, which names the files."""
    series = folder_of(stock_wheel.VERSION)
    name = options.patch
    known = {each: changes for each, _, changes in series_of(series)}
    files = getattr(options, "files", None)
    if files is None and name not in known:
        raise BuildError(f"The series has no {name}.\nIt has {', '.join(known)}.")
    if files is not None and (name in known or "/" in name or not name.endswith(".patch")):
        raise BuildError(
            f"{name} is no name for a new patch.\n"
            "Take one that ends in .patch and is not in the series, as 0005-what-for.patch."
        )
    if options.folder.exists():
        raise BuildError(f"{options.folder} is there already.\nName a new folder.")
    with zipfile.ZipFile(fetch(options.python)) as wheel:
        texts = stock_texts(wheel, series, name)
        changes = known.get(name, [])
        wanted = files if files is not None else [change.path for change in changes]
        if missing := [path for path in wanted if path not in wheel.NameToInfo]:
            raise BuildError(f"The wheel has no {missing[0]}.")
        before = {path: texts.get(path) or wheel.read(path).decode() for path in wanted}
    after = dict(before)
    for change in changes:
        after[change.path] = patch_series.apply_file_patch(change, after[change.path])
    write_files(options.folder / BEFORE, before)
    write_files(options.folder / AFTER, after)
    (options.folder / "says").write_text(
        options.says.strip() + "\n\n"
        if files is not None
        else description_of((series / name).read_text())
    )
    print(
        f"Change the files in {options.folder / AFTER}, then:"
        f" scripts/patches.py refresh {name} {options.folder}"
    )


def refresh(options: argparse.Namespace) -> None:
    """`refresh`."""
    before, after = options.folder / BEFORE, options.folder / AFTER
    if not before.is_dir() or not after.is_dir():
        raise BuildError(f"{options.folder} is not a folder that `edit` or `new` has made.")
    text = (options.folder / "says").read_text()
    changes = ""
    for file in sorted(path for path in after.rglob("*") if path.is_file()):
        path = file.relative_to(after)
        if not (before / path).is_file():
            raise BuildError(f"{file} is new: a patch changes files, it does not add them.")
        changes += patch_porting.unified(
            path.as_posix(), (before / path).read_text(), file.read_text()
        )
    if not changes:
        raise BuildError(f"Nothing differs between {before} and {after}.")
    series = folder_of(stock_wheel.VERSION)
    with ChangedSeries(series) as new:
        (new / options.patch).write_text(text + changes)
        names = (new / "series").read_text()
        if options.patch not in names.splitlines():
            (new / "series").write_text(f"{names}{options.patch}\n")
        check_patches.check(fetch(options.python), new)
    print(f"{series / options.patch}: {changes.count('@@ -')} hunks")


def drop(options: argparse.Namespace) -> None:
    """`drop`."""
    series = folder_of(stock_wheel.VERSION)
    names = patch_series.read_series(series)
    if options.patch not in names:
        raise BuildError(f"The series has no {options.patch}.\nIt has {', '.join(names)}.")
    with ChangedSeries(series) as new:
        (new / options.patch).unlink()
        lines = (new / "series").read_text().splitlines(keepends=True)
        (new / "series").write_text("".join(x for x in lines if x.strip() != options.patch))
        check_patches.check(fetch(options.python), new)
    print(f"{options.patch} is dropped; the others apply")


class ChangedSeries:
    """A copy of a series to change, which takes its place only if nothing is wrong with it."""

    def __init__(self, series: pathlib.Path) -> None:
        self._series = series

    def __enter__(self) -> pathlib.Path:
        self._copies = tempfile.TemporaryDirectory()
        self._copy = pathlib.Path(self._copies.name) / "series"
        shutil.copytree(self._series, self._copy)
        return self._copy

    def __exit__(self, kind: object, *_: object) -> None:
        with self._copies:
            if kind is not None:
                return
            for file in self._copy.iterdir():
                shutil.copy(file, self._series / file.name)
            for file in self._series.iterdir():
                if not (self._copy / file.name).exists():
                    file.unlink()


def wheel_of(release: str, tag: str, folder: pathlib.Path) -> pathlib.Path:
    """Downloads a wheel of another release, which has no pinned hash yet."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--implementation", "cp"]
    command += ["--python-version", f"{tag[2]}.{tag[3:]}", "--dest", str(folder)]
    for platform in ("manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"):
        command += ["--platform", platform]
    done = subprocess.run(
        [*command, f"tensorflow=={release}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reason = " ".join(done.stderr.strip().splitlines()[-1:])
        raise BuildError(
            f"pip could not download tensorflow=={release} for {tag}: {reason}\n"
            "Name a wheel that you have: --wheel."
        )
    return next(folder.glob("*.whl"))


def port(options: argparse.Namespace) -> None:
    """`port`."""
    out = options.out or folder_of(options.to)
    if out.exists():
        raise BuildError(f"{out} is there already.\nName another folder: --out.")
    series = series_of(folder_of(stock_wheel.VERSION))
    with tempfile.TemporaryDirectory() as folder:
        path = options.wheel or wheel_of(options.to, options.python, pathlib.Path(folder))
        with zipfile.ZipFile(path) as wheel:
            moved, problems = patch_porting.move_series(
                series,
                lambda file: wheel.read(file).decode() if file in wheel.NameToInfo else None,
            )
    out.mkdir(parents=True)
    for name, text in moved.items():
        (out / name).write_text(text)
    (out / "series").write_text("".join(f"{name}\n" for name, text in moved.items()))
    hunks = sum(len(change.hunks) for _, _, changes in series for change in changes)
    print(f"{out}: {hunks - len(problems)} of {hunks} hunks apply to {options.to}")
    if problems:
        raise BuildError("\n\n".join(["These do not apply.", *map(str, problems)]))


def abi(options: argparse.Namespace) -> None:
    """`abi`."""
    file = tensorflow_abi.abi_file()
    found = tensorflow_abi.current(options.python)
    if options.write:
        file.write_text(str(found))
    known = tensorflow_abi.read(file)
    if (known.replaced, known.headers) != (found.replaced, found.headers):
        differ = sorted(known.replaced ^ found.replaced)
        differ += sorted(path for path, _ in known.headers.items() ^ found.headers.items())
        raise BuildError(
            f"{file} is not what the built runtime needs: {', '.join(differ)} differ.\n"
            "Make it: scripts/patches.py abi --write."
        )
    # What is called depends on what the compiler has made inline.
    print(
        f"{file}: {len(found.symbols)} symbols ({len(known.symbols ^ found.symbols)} are others),"
        f" {len(found.replaced)} replaced ones and {len(found.headers)} headers"
    )


def check_abi(options: argparse.Namespace) -> None:
    """`check-abi`."""
    needed = tensorflow_abi.read(tensorflow_abi.abi_file())
    difference = tensorflow_abi.compare(
        needed, tensorflow_abi.read_wheel(options.wheel, needed.headers)
    )
    print(tensorflow_abi.describe(difference))
    if difference.is_missing_any:
        raise BuildError(f"{options.wheel.name} lacks what the runtime needs.")


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__, prog="patches.py")
    parser.add_argument("--python", metavar="TAG", default=stock_wheel.default_tag())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object) -> argparse.ArgumentParser:
        added = commands.add_parser(name)
        added.set_defaults(run=run)
        return added

    command("check", check)
    for name, run in (("edit", edit), ("refresh", refresh), ("new", edit)):
        added = command(name, run)
        added.add_argument("patch")
        added.add_argument("folder", type=pathlib.Path)
        if name == "new":
            added.add_argument("files", nargs="+", metavar="FILE")
            added.add_argument("--says", required=True, metavar="TEXT", help="what it does")
    command("drop", drop).add_argument("patch")
    added = command("port", port)
    added.add_argument("--to", required=True, metavar="RELEASE")
    added.add_argument("--wheel", type=pathlib.Path, help="of that release [pip downloads it]")
    added.add_argument("--out", type=pathlib.Path, help="new folder [patches/RELEASE]")
    command("abi", abi).add_argument("--write", action="store_true")
    command("check-abi", check_abi).add_argument("--wheel", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    run_main(main)
