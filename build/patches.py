# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the patches of TensorFlow's files, and says what the runtime needs of its libraries.

scripts/patches.py check [--source FOLDER]              does every patch apply, exactly?
scripts/patches.py edit PATCH FOLDER                    its files, before and after it, to change
scripts/patches.py refresh FOLDER                       the patch made again from them
scripts/patches.py new PATCH FOLDER FILE... --says TEXT a patch to be, of these files of the wheel
scripts/patches.py drop PATCH                           without it, if the others still apply
scripts/patches.py port --to 2.22.0 [--wheel X.whl]     for another release, as far as they apply
scripts/patches.py abi                                  what the built runtime needs of TensorFlow
scripts/patches.py check-abi --wheel X.whl              does another wheel have it?
"""

import argparse
import json
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterable

import abi_python
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
    return ROOT / "patches" / (release or BASE)


def series_of(folder: pathlib.Path) -> dict[str, tuple[str, list[patch_series.FilePatch]]]:
    """Reads a series: description and changes of each patch, in order."""
    patches = {}
    for name in patch_series.read_series(folder):
        text = (folder / name).read_text(encoding="utf-8")
        description = text[: text.index("--- a/")]
        patches[name] = description, patch_series.parse_patch(name, text)
    return patches


def fetch(tag: str, release: str) -> pathlib.Path:
    """Returns the stock wheel of a release."""
    return stock_wheel.fetch(tag, stock_wheel.cache_folder(), release or BASE)


def check(options: argparse.Namespace) -> None:
    """`check`; with --source also of a release's sources, in memory."""
    check_patches.check_releases(options.python, options.release)
    tree, release = options.source, options.release or BASE
    if not tree:
        return
    source_tree.check_release(tree, release)
    applied = source_tree.apply_to(tree, release)
    for line in applied.moved:
        print(f"moved: {line}")
    for path in source_tree.check_texts(folder_of(release) / "source", source_tree.read_from(tree)):
        print(f"not the text that the patches were made with: {path}")
    print(f"{release}: {check_patches.describe_source(applied, str(tree))}")


def edit(options: argparse.Namespace) -> None:
    """`edit`, and `new`, which names the files."""
    series, name = folder_of(options.release), options.patch
    known = series_of(series)
    changes: list[patch_series.FilePatch] = []
    if hasattr(options, "files"):  # of `new`
        if name in known or "/" in name or not name.endswith(".patch"):
            raise BuildError(
                f"{name} is no name for a new patch.\n"
                "Take one that ends in .patch and is not in the series, as 0005-what-for.patch."
            )
        says, files = options.says.strip() + "\n\n", options.files
    else:
        says, changes = known[check_own(name, known)]
        files = [change.path for change in changes]
    if options.folder.exists():
        raise BuildError(f"{options.folder} is there already.\nName a new folder.")
    with zipfile.ZipFile(fetch(options.python, options.release)) as wheel:
        read = patch_series.text_in(wheel)
        patched = patch_series.apply_patches(series, read, before=name).changed
        before = {path: patched.get(path) or read(path) for path in files}
    after = dict(before)
    for path, text in before.items():
        if text is None:
            raise BuildError(f"The wheel has no {path}.")
    for change in changes:
        after[change.path] = patch_series.apply_file_patch(change, after[change.path] or "")
    for folder, texts in ((BEFORE, before), (AFTER, after)):
        for path, text in texts.items():
            file = options.folder / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text or "", encoding="utf-8")
    (options.folder / "says").write_text(says, encoding="utf-8")
    made_of = {"patch": name, "release": options.release, "files": files}
    (options.folder / "made-of.json").write_text(json.dumps(made_of), encoding="utf-8")
    print(
        f"Change the files in {options.folder / AFTER}, then:"
        f" scripts/patches.py refresh {options.folder}"
    )


def check_own(name: str, names: Iterable[str]) -> str:
    """Returns the name of a patch that a series has in its own folder, or raises BuildError."""
    own = [each for each in names if "/" not in each]
    if name not in own:
        raise BuildError(
            f"The series has no {name}.\nIt has {', '.join(own)}; other releases' have others."
        )
    return name


def refresh(options: argparse.Namespace) -> None:
    """`refresh`."""
    before, after = options.folder / BEFORE, options.folder / AFTER
    if not (options.folder / "made-of.json").is_file():
        raise BuildError(f"{options.folder} is not a folder that `edit` or `new` has made.")
    made_of = json.loads((options.folder / "made-of.json").read_text(encoding="utf-8"))
    name, release, files = made_of["patch"], made_of["release"], made_of["files"]
    there = {file.relative_to(after).as_posix() for file in after.rglob("*") if file.is_file()}
    if odd := sorted(there ^ set(files)):
        raise BuildError(
            f"{after / odd[0]} is {'new' if odd[0] in there else 'gone'}.\n"
            "A patch changes files, it does not add or delete them."
        )
    changes = "".join(
        patch_porting.unified(
            path,
            (before / path).read_text(encoding="utf-8"),
            (after / path).read_text(encoding="utf-8"),
        )
        for path in files
    )
    if not changes:
        raise BuildError(f"Nothing differs between {before} and {after}.")
    series = folder_of(release)
    texts: dict[str, str | None] = {
        name: (options.folder / "says").read_text(encoding="utf-8") + changes
    }
    if name not in patch_series.read_series(series):
        texts["series"] = f"{(series / 'series').read_text(encoding='utf-8').rstrip()}\n{name}\n"
    write_series(series, fetch(options.python, release), texts)
    print(f"{series / name}: {changes.count('@@ -')} hunks")


def drop(options: argparse.Namespace) -> None:
    """`drop`."""
    series, name = folder_of(options.release), options.patch
    check_own(name, patch_series.read_series(series))
    lines = (series / "series").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if line.split("#")[0].strip() != name)
    write_series(series, fetch(options.python, options.release), {name: None, "series": kept})
    print(f"{name} is dropped; the others apply")


def write_series(series: pathlib.Path, wheel: pathlib.Path, texts: dict[str, str | None]) -> None:
    """Writes files of a series, or removes those without a text, if it applies to a wheel then."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as stock:
        copy = pathlib.Path(folder) / "patches" / series.name
        shutil.copytree(series.parent, copy.parent)
        for place in (copy, series):
            for name, text in texts.items():
                if text is None:
                    (place / name).unlink()
                else:
                    (place / name).write_text(text, encoding="utf-8")
            check_patches.check(stock, place)


def share(series: pathlib.Path, name: str, wheel: zipfile.ZipFile) -> bool:
    """Names another release's patch in the place of one of a series, if that does just the same."""
    lines = (series / "series").read_text(encoding="utf-8")
    file = series / name
    text, wanted = file.read_text(encoding="utf-8"), patch_series.apply_series(series, wheel)
    for other in sorted(series.parent.glob(f"*/{name}"), key=lambda path: path.parent.name != BASE):
        if other.parent == series:
            continue
        shared = lines.replace(f"{name}\n", f"../{other.parent.name}/{name}\n")
        (series / "series").write_text(shared, encoding="utf-8")
        file.unlink()
        try:
            if patch_series.apply_series(series, wheel) == wanted:
                return True
        except BuildError:
            pass  # It is for other text.
        (series / "series").write_text(lines, encoding="utf-8")
        file.write_text(text, encoding="utf-8")
    return False


def port(options: argparse.Namespace) -> None:
    """`port`."""
    out = options.out or folder_of(options.to)
    if out.exists():
        raise BuildError(f"{out} is there already.\nName another folder: --out.")
    series = series_of(folder_of(options.release))
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
        with wheel, zipfile.ZipFile(fetch(options.python, options.release)) as old:
            moved, problems = patch_porting.move_series(
                series, patch_series.text_in(old), patch_series.text_in(wheel)
            )
            out.mkdir(parents=True)
            for name, text in moved.items():
                (out / name).write_text(text, encoding="utf-8")
            (out / "series").write_text("".join(f"{name}\n" for name in moved), encoding="utf-8")
            check_patches.check(wheel, out)
            own = [name for name in moved if not share(out, name, wheel)]
    hunks = sum(len(change.hunks) for _, changes in series.values() for change in changes)
    print(
        f"{out}: {hunks - len(problems)} of {hunks} hunks apply to {options.to};"
        f" {len(own)} of {len(moved)} patches are its own"
    )
    if problems:
        raise BuildError("\n\n".join(["These do not apply.", *map(str, problems)]))


def abi(options: argparse.Namespace) -> None:
    """`abi`."""
    print(tensorflow_abi.current(options.python, options.release or BASE))


def check_abi(options: argparse.Namespace) -> None:
    """`check-abi`."""
    needed = tensorflow_abi.current(options.python, options.release or BASE)
    wheel = tensorflow_abi.read_wheel(options.wheel, needed.included, needed.replaced)
    said, is_broken = tensorflow_abi.compare(needed, wheel)
    with zipfile.ZipFile(options.wheel) as archive:
        in_python = abi_python.missing(abi_python.uses_of(abi_python.files_of_the_wheel()), archive)
    print("\n".join([*in_python, said]))
    if is_broken or in_python:
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
