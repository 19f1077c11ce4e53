# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the patches of TensorFlow's files, and what the runtime needs of its libraries.

scripts/patches.py check [--source FOLDER]              does every patch apply, exactly?
scripts/patches.py edit PATCH FOLDER                    its files, before and after it, to change
scripts/patches.py refresh FOLDER                       the patch made again from them
scripts/patches.py new PATCH FOLDER FILE... --says TEXT a patch to be, of these files of the wheel
scripts/patches.py drop PATCH                           without it, if the others still apply
scripts/patches.py port --to 2.22.0 [--wheel X.whl]     for another release, as far as they apply
scripts/patches.py abi                                  what the built runtime needs of TensorFlow
scripts/patches.py check-abi --wheel X.whl              does another wheel have it?
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import tempfile
import zipfile

import check_patches
import patch_porting
import patch_series
import source_tree
import stock_wheel
import tensorflow_abi
from build_error import BuildError, command_line, run_main
from releases import BASE, RELEASES

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
            known = change.path in texts
            text = texts[change.path] if known else wheel.read(change.path).decode()
            texts[change.path] = patch_series.apply_file_patch(change, text)
    return texts


def write_files(folder: pathlib.Path, texts: dict[str, str]) -> None:
    """Writes files, with the folders that they are in."""
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def fetch(tag: str, release: str) -> pathlib.Path:
    """Returns the stock wheel of a release."""
    return stock_wheel.fetch(tag, stock_wheel.cache_folder(), release)


def check(options: argparse.Namespace) -> None:
    """`check`."""
    check_patches.check_releases(options.python, options.release)
    if options.source:
        check_tree(options.source, options.release or BASE)


def check_tree(tree: pathlib.Path, release: str) -> None:
    """Applies a release's source patches to its sources, in memory.

    Args:
      tree: TensorFlow's sources.
      release: theirs.

    Raises:
      BuildError: they are not of that release, or a patch does not apply.
    """
    source_tree.check_release(tree, release)
    applied = source_tree.apply_to(tree, release)
    for line in applied.moved:
        print(f"moved: {line}")
    for path in source_tree.check_texts(folder_of(release) / "source", source_tree.read_from(tree)):
        print(f"not the text that the patches were made with: {path}")
    print(f"{release}: {check_patches.describe_source(applied, str(tree))}")


def edit(options: argparse.Namespace) -> None:
    """`edit`, and `new`, which names the files."""
    series = folder_of(options.release or BASE)
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
    with zipfile.ZipFile(fetch(options.python, options.release or BASE)) as wheel:
        texts = stock_texts(wheel, series, name)
        changes = known.get(name, [])
        wanted = files if files is not None else [change.path for change in changes]
        if missing := [path for path in wanted if path not in wheel.NameToInfo]:
            raise BuildError(f"The wheel has no {missing[0]}.")
        before = {
            path: texts[path] if path in texts else wheel.read(path).decode() for path in wanted
        }
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
    made_of = {"patch": name, "release": options.release or BASE, "files": list(before)}
    (options.folder / "made-of.json").write_text(json.dumps(made_of))
    print(
        f"Change the files in {options.folder / AFTER}, then:"
        f" scripts/patches.py refresh {options.folder}"
    )


def refresh(options: argparse.Namespace) -> None:
    """`refresh`."""
    before, after = options.folder / BEFORE, options.folder / AFTER
    if not (options.folder / "made-of.json").is_file():
        raise BuildError(f"{options.folder} is not a folder that `edit` or `new` has made.")
    made_of = json.loads((options.folder / "made-of.json").read_text())
    name, release, files = made_of["patch"], made_of["release"], made_of["files"]
    there = {file.relative_to(after).as_posix() for file in after.rglob("*") if file.is_file()}
    if odd := sorted(there ^ set(files)):
        raise BuildError(
            f"{after / odd[0]} is {'new' if odd[0] in there else 'gone'}.\n"
            "A patch changes files, it does not add or delete them."
        )
    changes = "".join(
        patch_porting.unified(path, (before / path).read_text(), (after / path).read_text())
        for path in files
    )
    if not changes:
        raise BuildError(f"Nothing differs between {before} and {after}.")
    series, wheel = folder_of(release), fetch(options.python, release)
    known = patch_series.read_series(series)
    with ChangedSeries(series, wheel) as new:
        (new / name).write_text((options.folder / "says").read_text() + changes)
        if name not in known:
            names = (new / "series").read_text().rstrip()
            (new / "series").write_text(f"{names}\n{name}\n")
    print(f"{series / name}: {changes.count('@@ -')} hunks")


def drop(options: argparse.Namespace) -> None:
    """`drop`."""
    release = options.release or BASE
    series, wheel = folder_of(release), fetch(options.python, release)
    names = patch_series.read_series(series)
    if options.patch not in names:
        raise BuildError(f"The series has no {options.patch}.\nIt has {', '.join(names)}.")
    with ChangedSeries(series, wheel) as new:
        (new / options.patch).unlink()
        lines = (new / "series").read_text().splitlines(keepends=True)
        kept = [line for line in lines if line.split("#")[0].strip() != options.patch]
        (new / "series").write_text("".join(kept))
    print(f"{options.patch} is dropped; the others apply")


class ChangedSeries:
    """A copy of a series to change; what differs then is taken over, if it applies to a wheel."""

    def __init__(self, series: pathlib.Path, wheel: pathlib.Path) -> None:
        self._series = series
        self._wheel = wheel

    def __enter__(self) -> pathlib.Path:
        self._copies = tempfile.TemporaryDirectory()
        self._copy = pathlib.Path(self._copies.name) / self._series.name
        shutil.copytree(self._series, self._copy)
        self._before = self._texts()
        return self._copy

    def __exit__(self, kind: object, *_: object) -> None:
        with self._copies:
            if kind is not None:
                return
            with zipfile.ZipFile(self._wheel) as wheel:
                check_patches.check(wheel, self._copy)
            after = self._texts()
            for name in after.keys() | self._before.keys():
                if name not in after:
                    (self._series / name).unlink()
                elif after[name] != self._before.get(name):
                    (self._series / name).write_text(after[name])

    def _texts(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in self._copy.iterdir()}


def text_in(wheel: zipfile.ZipFile, path: str) -> str | None:
    """A file of a wheel, or None if it has none of that path."""
    return wheel.read(path).decode() if path in wheel.NameToInfo else None


def port(options: argparse.Namespace) -> None:
    """`port`."""
    out = options.out or folder_of(options.to)
    if out.exists():
        raise BuildError(f"{out} is there already.\nName another folder: --out.")
    series = series_of(folder_of(options.release or BASE))
    with tempfile.TemporaryDirectory() as folder:
        path = options.wheel or stock_wheel.download(
            options.python,
            options.to,
            sorted({tag for known in RELEASES.values() for tag in known.platform.split(".")}),
            pathlib.Path(folder),
            "name a wheel that you have: --wheel",
        )
        try:
            wheel = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise BuildError(f"{path} is not a wheel: {error}") from error
        with wheel, zipfile.ZipFile(fetch(options.python, options.release or BASE)) as old:
            moved, problems = patch_porting.move_series(
                series, lambda file: text_in(old, file), lambda file: text_in(wheel, file)
            )
        out.mkdir(parents=True)
        for name, text in moved.items():
            (out / name).write_text(text)
        (out / "series").write_text("".join(f"{name}\n" for name in moved))
        with zipfile.ZipFile(path) as wheel:
            check_patches.check(wheel, out)
    hunks = sum(len(change.hunks) for _, _, changes in series for change in changes)
    print(f"{out}: {hunks - len(problems)} of {hunks} hunks apply to {options.to}")
    if problems:
        raise BuildError("\n\n".join(["These do not apply.", *map(str, problems)]))


def abi(options: argparse.Namespace) -> None:
    """`abi`."""
    print(tensorflow_abi.current(options.python, options.release or BASE))


def check_abi(options: argparse.Namespace) -> None:
    """`check-abi`."""
    needed = tensorflow_abi.current(options.python, options.release or BASE)
    wheel = tensorflow_abi.read_wheel(options.wheel, needed.headers)
    said, is_missing_any = tensorflow_abi.compare(needed, wheel)
    print(said)
    if is_missing_any:
        raise BuildError(f"{options.wheel.name} lacks what the runtime needs.")


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__, prog="patches.py")
    parser.add_argument("--python", metavar="TAG", default=stock_wheel.default_tag())
    parser.add_argument(
        "--release", default="", help=f"whose patches; default: {BASE}; for check, each release"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object) -> argparse.ArgumentParser:
        added = commands.add_parser(name)
        added.set_defaults(run=run)
        return added

    command("check", check).add_argument(
        "--source", type=pathlib.Path, metavar="FOLDER", help="TensorFlow's sources, to check, too"
    )
    for name, run in (("edit", edit), ("refresh", refresh), ("new", edit)):
        added = command(name, run)
        if name != "refresh":
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
    command("abi", abi)
    command("check-abi", check_abi).add_argument("--wheel", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    run_main(main)
