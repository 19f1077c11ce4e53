# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the multi-stream wheel from the stock wheel, the runtime library and our Python files.

    python3 build/assemble_wheel.py --stock WHEEL --runtime LIBRARY --out FOLDER
        [--changed PATH=FILE ...] [--added PATH=FILE ...] --license FILE

PATH is a path in the wheel. A changed file replaces the stock wheel's, an added one must be new.
"""

import base64
import copy
import csv
import hashlib
import io
import pathlib
import re
import struct
import zipfile

import platform_tag
from build_error import BuildError, command_line, run_main

# The part of the version after the +. Raise it with each release on one TensorFlow version.
LOCAL_VERSION = "multistream.1"

# Of the extra "serve": what the model server needs beside what TensorFlow needs.
SERVE = (
    "grpcio-health-checking",
    "prometheus-client",
    "starlette",
    "tensorflow-serving-api",
    "uvicorn",
)

_DateTime = tuple[int, int, int, int, int, int]

_NOTICE = "# Changed by the Multi-Stream TensorFlow Authors: see MODIFICATIONS in {dist_info}.\n"


class Names:
    """What a stock wheel's file name says, and the names that follow from it.

    `version` ("2.21.0") and `stock_dist_info` are the stock wheel's, `new_version` and `dist_info`
    those of the wheel to make; `python` has the tags of the Python, such as "cp312-cp312".
    """

    def __init__(self, stock: str) -> None:
        name = re.fullmatch(r"tensorflow-([^-]+)-([^-]+-[^-]+)-[^-]+\.whl", stock)
        if name is None:
            raise BuildError(f"{stock} is not the name of a TensorFlow wheel.")
        self.version, self.python = name.groups()
        self.new_version = f"{self.version}+{LOCAL_VERSION}"
        self.stock_dist_info = f"tensorflow-{self.version}.dist-info"
        self.dist_info = f"tensorflow-{self.new_version}.dist-info"


def assemble(
    stock: pathlib.Path,
    runtime: pathlib.Path,
    changed: dict[str, bytes],
    added: dict[str, bytes],
    license_text: bytes,
    out: pathlib.Path,
) -> pathlib.Path:
    """Writes the wheel to a folder and returns its path.

    `changed` and `added` have the content of files by path in the wheel; `license_text` is the
    licence of the added ones. The runtime library goes beside TensorFlow's own.
    """
    name = Names(stock.name)
    with zipfile.ZipFile(stock) as archive:
        members = archive.infolist()
        stock_paths = {member.filename for member in members}
        runtime_path = f"tensorflow/{runtime.name}"
        notice = _NOTICE.format(dist_info=name.dist_info).encode()
        changed = {path: notice + content for path, content in sorted(changed.items())}
        added = dict(sorted({**added, runtime_path: runtime.read_bytes()}.items()))
        if missing := sorted(changed.keys() - stock_paths):
            raise BuildError(f"{missing[0]} is to be changed, but {stock.name} has no such file.")
        if there := sorted(added.keys() & stock_paths):
            raise BuildError(
                f"{there[0]} is to be added, but {stock.name} has it.\n"
                "Rename it, or change the stock file by a patch."
            )
        platform = platform_tag.platform_tag(
            runtime, bundled=frozenset(path.rsplit("/", 1)[-1] for path in stock_paths)
        )
        tag = f"{name.python}-{platform}"

        stock_metadata = {
            file: archive.read(f"{name.stock_dist_info}/{file}").decode()
            for file in ("METADATA", "RECORD", "WHEEL")
        }
        replaced = dict(changed)
        replaced[f"{name.dist_info}/METADATA"] = _metadata(stock_metadata["METADATA"], name)
        lines = [line for line in stock_metadata["WHEEL"].splitlines() if line]
        kept = [line for line in lines if not line.startswith(("Tag: ", "Generator: "))]
        wheel_lines = [*kept, "Generator: multi-stream-tensorflow", f"Tag: {tag}", ""]
        replaced[f"{name.dist_info}/WHEEL"] = "\n".join(wheel_lines).encode()
        added[f"{name.dist_info}/licenses/LICENSE"] = license_text
        added[f"{name.dist_info}/MODIFICATIONS"] = _modifications(name, changed, added)
        record_path = f"{name.dist_info}/RECORD"
        replaced[record_path] = _record(stock_metadata["RECORD"], name, replaced, added)

        date_time = archive.getinfo(f"{name.stock_dist_info}/METADATA").date_time
        wheel = out / f"tensorflow-{name.new_version}-{tag}.whl"
        with zipfile.ZipFile(wheel, "w") as target:
            for member in members:
                path = _new_path(member.filename, name)
                if path in replaced:
                    _add(target, path, replaced[path], date_time)
                else:
                    copy_member(archive, member, target, path)
            for path, content in added.items():
                _add(target, path, content, date_time)
    return wheel


def copy_member(
    source: zipfile.ZipFile, member: zipfile.ZipInfo, target: zipfile.ZipFile, name: str
) -> None:
    """Adds a member of another archive with its compressed bytes: compressing takes minutes."""
    assert source.fp is not None and target.fp is not None
    source.fp.seek(member.header_offset)
    header = source.fp.read(30)
    source.fp.seek(sum(struct.unpack_from("<HH", header, 26)), 1)  # name and extra field
    copied = copy.copy(member)
    copied.filename = name
    copied.flag_bits &= ~0x08  # The sizes are in the header, not behind the bytes.
    copied.header_offset = target.start_dir
    target.fp.seek(copied.header_offset)
    target.fp.write(copied.FileHeader())
    left = member.compress_size
    while left:
        block = source.fp.read(min(left, 1 << 22))
        if not block:
            raise zipfile.BadZipFile(f"{member.filename} is cut off.")
        target.fp.write(block)
        left -= len(block)
    # What zipfile keeps for the directory at the end.
    target.start_dir = target.fp.tell()
    target.filelist.append(copied)
    target.NameToInfo[name] = copied


def _add(target: zipfile.ZipFile, path: str, content: bytes, date_time: _DateTime) -> None:
    member = zipfile.ZipInfo(path, date_time)
    member.external_attr = 0o100644 << 16
    target.writestr(member, content, zipfile.ZIP_DEFLATED, compresslevel=9)


def _new_path(path: str, name: Names) -> str:
    if path.startswith(name.stock_dist_info + "/"):
        return name.dist_info + path[len(name.stock_dist_info) :]
    return path


def _metadata(stock: str, name: Names) -> bytes:
    headers, separator, description = stock.partition("\n\n")
    version_line = f"Version: {name.version}"
    if headers.splitlines().count(version_line) != 1:
        raise BuildError(f"The stock wheel's METADATA has no line '{version_line}'.")
    summary = f"TensorFlow {name.version}, modified: several GPU streams at a time."
    for old, new in (
        (f"^{version_line}$", f"Version: {name.new_version}"),
        ("^Summary: .*", f"Summary: {summary}"),
        ("^License: .*", r"\g<0>\nLicense-File: LICENSE"),
    ):
        headers = re.sub(old, new, headers, flags=re.MULTILINE)
    needs = [f'Requires-Dist: {package}; extra == "serve"' for package in SERVE]
    headers = "\n".join([headers.rstrip("\n"), "Provides-Extra: serve", *needs])
    statement = (
        f"**This is a modified TensorFlow {name.version}**, and not a release of the TensorFlow\n"
        "authors. The Multi-Stream TensorFlow Authors added a runtime library and Python modules\n"
        "that run steps on several GPU streams at a time, and changed Python files to load them.\n"
        f"`MODIFICATIONS` in `{name.dist_info}` lists every file added or changed.\n"
        "What follows is TensorFlow's own description.\n\n"
    )
    return (headers + separator + statement + description.lstrip("\n")).encode()


def _modifications(name: Names, changed: dict[str, bytes], added: dict[str, bytes]) -> bytes:
    text = (
        f"This package is TensorFlow {name.version} as modified by the Multi-Stream TensorFlow\n"
        "Authors. TensorFlow and the modifications are licensed under the Apache License,\n"
        "Version 2.0; see licenses/LICENSE.\n"
    )
    for what, files in (("changed", changed), ("added", added)):
        text += "".join([f"\nFiles {what}:\n", *(f"  {path}\n" for path in files)])
    return text.encode()


def _record(stock: str, name: Names, replaced: dict[str, bytes], added: dict[str, bytes]) -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    for stock_path, digest, size in csv.reader(io.StringIO(stock)):
        path = _new_path(stock_path, name)
        if path not in replaced:
            writer.writerow((path, digest, size))
    for path, content in {**replaced, **added}.items():
        hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        writer.writerow((path, f"sha256={hashed.decode()}", len(content)))
    return sink.getvalue().encode()


def _files(pairs: list[str]) -> dict[str, bytes]:
    split = (pair.partition("=") for pair in pairs)
    return {path: pathlib.Path(file).read_bytes() for path, _, file in split}


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--stock", type=pathlib.Path, required=True)
    parser.add_argument("--runtime", type=pathlib.Path, required=True)
    parser.add_argument("--changed", metavar="PATH=FILE", action="append", default=[])
    parser.add_argument("--added", metavar="PATH=FILE", action="append", default=[])
    parser.add_argument("--license", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        assemble(
            options.stock,
            options.runtime,
            _files(options.changed),
            _files(options.added),
            options.license.read_bytes(),
            options.out,
        )
    except OSError as error:
        raise BuildError(f"{error.filename or options.out}: {error.strerror}.") from error


if __name__ == "__main__":
    run_main(main)
