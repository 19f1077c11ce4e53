# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks wheels that are to be released, and writes what goes with them.

    python3 build/release.py --out FOLDER [--since REVISION] WHEEL...

FOLDER gets beside the wheels, one of which may be the model server's front's

    WHEEL.cdx.json     what the wheel is made of (CycloneDX): the stock wheel that it changes, with
                       each patch, the runtime library, and what it needs of the package index; of
                       the front, the libraries that are linked into it
    index.html         a page of the wheels with their hashes, which pip install --find-links reads
    SHA256SUMS         of all of them; sha256sum --check SHA256SUMS verifies a download
    RELEASE_NOTES.md   the changelog's entries that a revision did not have

All are the same whenever and wherever they are made from the same wheels and revision.
"""

import concurrent.futures
import datetime
import email.message
import email.parser
import hashlib
import html
import pathlib
import re
import subprocess
import sys
import urllib.parse
import uuid
import zipfile
from collections.abc import Sequence

from cyclonedx.model import AttachedText, HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import (
    Component,
    ComponentScope,
    ComponentType,
    Diff,
    Patch,
    PatchClassification,
    Pedigree,
)
from cyclonedx.output import OutputFormat, make_outputter
from cyclonedx.schema import SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement

import front_wheel
import patch_series
from assemble_wheel import LOCAL_VERSION
from build_error import BuildError, command_line, run_main
from releases import release_named
from stock_wheel import sha256_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
_NAME = re.compile(
    r"tensorflow-(?P<release>[\d.]+(rc\d+)?)\+(?P<local>[\w.]+)-(?P<tag>cp\d+)-cp\d+-\w+\.whl"
)
_RUNTIME = "tensorflow/libtensorflow_multistream.so"
_CHANGELOG = "docs/changelog.md"


def parse_name(wheel: pathlib.Path) -> tuple[str, str]:
    """Reads from a wheel's file name the release of TensorFlow and the tag of the Python."""
    name = _NAME.fullmatch(wheel.name)
    if name is None or name["local"] != LOCAL_VERSION:
        raise BuildError(
            f"{wheel.name} is not a wheel of version {LOCAL_VERSION}.\n"
            "Take those that scripts/build_wheel.sh has made."
        )
    return name["release"], name["tag"]


def is_front(wheel: pathlib.Path) -> bool:
    """Whether a wheel is that of the model server's front."""
    return wheel.name.startswith(f"{front_wheel.PACKAGE}-{front_wheel.VERSION}-")


def check(wheel: pathlib.Path) -> None:
    """Checks a wheel as those do who publish it, with twine and auditwheel."""
    for command in (("twine", "check", "--strict"), ("auditwheel", "show")):
        line = [sys.executable, "-m", *command, str(wheel)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        said = " ".join((done.stdout + done.stderr).split())
        if done.returncode:
            raise BuildError(f"{command[0]} refuses {wheel.name}: {said}")
        if command[0] == "auditwheel":
            found = re.search(r'platform tag: "(\w+)"', said)
            if found is None or found[1] not in wheel.name:
                raise BuildError(f"The tag of {wheel.name} is not the one of its libraries: {said}")


def _metadata(wheel: pathlib.Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        if len(names) != 1:
            raise BuildError(f"{wheel.name} has no metadata.")
        return email.parser.BytesParser().parsebytes(archive.read(names[0]), headersonly=True)


def _hash(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def _needed(requirement: str) -> Component:
    parsed = Requirement(requirement)
    properties = [Property(name="python:requirement", value=requirement)]
    return Component(
        name=parsed.name,
        bom_ref=requirement,
        purl=PackageURL("pypi", name=parsed.name.lower().replace("_", "-")),
        scope=ComponentScope.OPTIONAL if "extra" in str(parsed.marker) else ComponentScope.REQUIRED,
        properties=properties,
    )


def bill_of_materials(wheel: pathlib.Path, patches: pathlib.Path, made: datetime.datetime) -> str:
    """Says what a wheel is made of, with the patches of that folder, in CycloneDX 1.6 as JSON."""
    release, tag = parse_name(wheel)
    stock = release_named(release)
    metadata = _metadata(wheel)
    with zipfile.ZipFile(wheel) as archive:
        if _RUNTIME not in archive.NameToInfo:
            raise BuildError(f"{wheel.name} has no {_RUNTIME}.")
        runtime = hashlib.sha256(archive.read(_RUNTIME)).hexdigest()
    digest = sha256_of(wheel)
    version = str(metadata["Version"])
    pedigree = Pedigree(
        ancestors=[
            Component(
                name="tensorflow",
                version=release,
                bom_ref=f"tensorflow-{release}-{tag}",
                purl=PackageURL("pypi", name="tensorflow", version=release),
                hashes=[_hash(stock.sha256[tag])],
            )
        ],
        patches=[
            Patch(
                type=PatchClassification.UNOFFICIAL,
                diff=Diff(text=AttachedText(content=(patches / name).read_text(encoding="utf-8"))),
            )
            for name in patch_series.read_series(patches)
        ],
        notes="The runtime library is added, with the Python files that MODIFICATIONS lists.",
    )
    itself = Component(
        name="tensorflow",
        version=version,
        bom_ref=wheel.name,
        type=ComponentType.LIBRARY,
        hashes=[_hash(digest)],
        pedigree=pedigree,
    )
    library = Component(
        name=pathlib.PurePosixPath(_RUNTIME).name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=_RUNTIME,
        hashes=[_hash(runtime)],
    )
    needed = map(_needed, sorted(metadata.get_all("Requires-Dist", [])))
    return _text(itself, [library, *needed], made)


def bill_of_front(wheel: pathlib.Path, made: datetime.datetime) -> str:
    """Says which libraries are linked into the model server's front, as bill_of_materials does."""
    with zipfile.ZipFile(wheel) as archive:
        notices = [name for name in archive.namelist() if name.endswith("/copyright")]
    itself = Component(
        name=front_wheel.NAME,
        version=str(_metadata(wheel)["Version"]),
        bom_ref=wheel.name,
        type=ComponentType.APPLICATION,
        hashes=[_hash(sha256_of(wheel))],
    )
    parts = []
    for notice in notices:
        name, _, version = pathlib.PurePosixPath(notice).parent.name.partition("_")
        url = PackageURL("deb", "debian", name, version)
        library = ComponentType.LIBRARY
        parts.append(Component(name=name, version=version, type=library, purl=url, bom_ref=name))
    return _text(itself, parts, made)


def _text(itself: Component, parts: list[Component], made: datetime.datetime) -> str:
    """The bill of a wheel as JSON; `itself` has one hash, the wheel's."""
    (wheel_hash,) = itself.hashes
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{wheel_hash.content}"),
        components=parts,
    )
    bom.metadata.timestamp = made
    bom.metadata.component = itself
    bom.register_dependency(itself, bom.components)
    text: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(
        indent=2
    )
    return text + "\n"


def git(*arguments: str) -> str:
    """Runs Git in the repository and returns what it prints."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise BuildError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def entries_of(changelog: str) -> list[tuple[str, str]]:
    """The date and the text of each entry of docs/changelog.md, in its order; links are text."""
    entries: list[tuple[str, str]] = []
    date = ""
    for line in changelog.splitlines():
        if line.startswith("## "):
            date = line[3:]
        elif line.startswith("- "):
            entries.append((date, line))
        elif line.startswith("  ") and entries:
            entries[-1] = (date, f"{entries[-1][1]}\n{line}")
    return [(date, re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)) for date, text in entries]


def release_notes(wheels: Sequence[pathlib.Path], since: str) -> str:
    """Says in Markdown what is new: the wheels' hashes, and the changelog's new entries.

    `since` is a revision; "" for the last tag, or the beginning if there is none.
    """
    if not since:
        tags = git("tag", "--merged", "HEAD", "--sort=-creatordate").splitlines()
        since = tags[0] if tags else ""
    known = set(entries_of(git("show", f"{since}:{_CHANGELOG}"))) if since else set()
    changes: dict[str, list[str]] = {}
    for date, text in entries_of(git("show", f"HEAD:{_CHANGELOG}")):
        if (date, text) not in known:
            changes.setdefault(date, []).append(text)
    days = [f"### {date}\n\n" + "\n".join(texts) for date, texts in changes.items()]
    new = "\n\n".join(days) or "None."
    rows = "\n".join(f"| `{wheel.name}` | `{sha256_of(wheel)}` |" for wheel in wheels)
    return f"""\
# Multi-stream TensorFlow {LOCAL_VERSION}

Made from {git("rev-parse", "HEAD")}.

| wheel | SHA-256 |
| --- | --- |
{rows}

## Changes{f" since {since}" if since else ""}

{new}
"""


def index_page(wheels: Sequence[pathlib.Path]) -> str:
    """A page of links to the wheels beside it, as pip reads it (PEP 503)."""
    links = []
    for wheel in sorted(wheels):
        pythons = html.escape(str(_metadata(wheel)["Requires-Python"] or ""))
        address = f"{urllib.parse.quote(wheel.name)}#sha256={sha256_of(wheel)}"
        links.append(f'<a href="{address}" data-requires-python="{pythons}">{wheel.name}</a><br>\n')
    return f"<!DOCTYPE html>\n<title>tensorflow {LOCAL_VERSION}</title>\n{''.join(links)}"


def write(wheels: Sequence[pathlib.Path], out: pathlib.Path, since: str) -> None:
    """Writes what goes with wheels into the folder that has them; `since` as in release_notes."""
    made = datetime.datetime.fromisoformat(git("log", "-1", "--format=%cI"))
    files = list(wheels)
    for wheel in wheels:
        files.append(out / f"{wheel.name}.cdx.json")
        if is_front(wheel):
            bill = bill_of_front(wheel, made)
        else:
            bill = bill_of_materials(wheel, ROOT / "patches" / parse_name(wheel)[0], made)
        files[-1].write_text(bill, encoding="utf-8")
    files.append(out / "RELEASE_NOTES.md")
    files[-1].write_text(release_notes(wheels, since), encoding="utf-8")
    files.append(out / "index.html")
    files[-1].write_text(index_page(wheels), encoding="utf-8")
    sums = [f"{sha256_of(file)}  {file.name}\n" for file in sorted(files)]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("wheels", nargs="+", type=pathlib.Path, metavar="WHEEL")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder that has them")
    parser.add_argument("--since", default="", help="revision; default: the last tag")
    options = parser.parse_args()
    for wheel in options.wheels:
        if not wheel.is_file() or wheel.resolve().parent != options.out.resolve():
            raise BuildError(f"There is no {wheel} in {options.out}.")
        if not is_front(wheel):
            parse_name(wheel)
        print(f"{wheel.name} ...", flush=True)
    # auditwheel takes some minutes for each, and unpacks it.
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(check, options.wheels))
    write(options.wheels, options.out, options.since)
    for file in sorted(options.out.iterdir()):
        print(file)


if __name__ == "__main__":
    run_main(main)
