# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What goes with wheels that are released says what they are, and wrong wheels are refused."""

import datetime
import hashlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import front_wheel
import release
from assemble_wheel import LOCAL_VERSION
from build_error import BuildError
from fakes import compile_library, make_zip
from releases import BASE, RELEASES
from stock_wheel import sha256_of

METADATA = f"""Metadata-Version: 2.1
Name: tensorflow
Version: {BASE}+{LOCAL_VERSION}
Requires-Dist: numpy>=1.26.0
Requires-Dist: nvidia-nccl-cu12<3.0; extra == "and-cuda"
Description-Content-Type: text/markdown

# TensorFlow
"""
RUNTIME = "tensorflow/libtensorflow_multistream.so"
MADE = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)


# A call that every libc has, and one that the first manylinux levels' does not.
OLD_CALL, NEWER_CALL = 'puts("")', "getrandom(nullptr, 0, 0)"
# A front's call that a libc has since 2.27, the lowest level of all.
MAKES_FILES_IN_MEMORY = '#include <sys/mman.h>\nvoid f() { memfd_create("", 0); }\n'


def make_wheel(
    folder: pathlib.Path, call: str = OLD_CALL, metadata: str = METADATA
) -> pathlib.Path:
    """A wheel whose runtime makes a call; the same bytes each time."""
    folder.mkdir(exist_ok=True)
    source = f"#include <cstdio>\n#include <sys/random.h>\nvoid f() {{ {call}; }}\n"
    library = compile_library(folder / "a.so", source)
    path = folder / f"tensorflow-{BASE}+{LOCAL_VERSION}-cp311-cp311-manylinux_2_5_x86_64.whl"
    info = f"tensorflow-{BASE}+{LOCAL_VERSION}.dist-info"
    files: dict[str, str | bytes] = {
        RUNTIME: library.read_bytes(),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n",
        f"{info}/RECORD": f"{RUNTIME},,\n",  # where auditwheel looks for files
    }
    library.unlink()
    return make_zip(path, files)


def test_a_wheel_whose_tag_is_true_passes(tmp_path: pathlib.Path) -> None:
    release.check(make_wheel(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"call": NEWER_CALL}, "is not the one of its libraries"),
        ({"metadata": METADATA.partition("Description")[0]}, "twine refuses"),
    ],
)
def test_a_tag_that_promises_more_or_metadata_that_an_index_would_not_take_is_refused(
    tmp_path: pathlib.Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(BuildError, match=message):
        release.check(make_wheel(tmp_path, **changes))


def test_the_bill_names_stock_wheel_patches_runtime_and_needs(tmp_path: pathlib.Path) -> None:
    wheel = make_wheel(tmp_path)
    text = release.bill_of_materials(wheel, release.ROOT / "patches" / BASE, MADE)
    # Each pytest process imports this file, and the validator takes seconds.
    schema, validation = map(
        importlib.import_module, ("cyclonedx.schema", "cyclonedx.validation.json")
    )
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    itself = bill["metadata"]["component"]
    assert itself["hashes"][0]["content"] == sha256_of(wheel)
    (ancestor,) = itself["pedigree"]["ancestors"]
    assert ancestor["hashes"][0]["content"] == RELEASES[BASE].sha256["cp311"]
    series = (release.ROOT / "patches" / BASE / "series").read_text().split()
    assert len(itself["pedigree"]["patches"]) == len(series)
    parts = {part["name"]: part for part in bill["components"]}
    with zipfile.ZipFile(wheel) as archive:
        digest = hashlib.sha256(archive.read(RUNTIME)).hexdigest()
    assert parts["libtensorflow_multistream.so"]["hashes"][0]["content"] == digest
    assert parts["numpy"]["scope"] == "required"
    assert parts["nvidia-nccl-cu12"]["scope"] == "optional"


@pytest.fixture
def front(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The wheel of a front that is linked with a library."""
    (tmp_path / "libboost-dev").mkdir()
    (tmp_path / "libboost-dev" / "copyright").write_text("Copyright\n")
    monkeypatch.setattr(front_wheel, "_notice", lambda name: tmp_path / name / "copyright")
    program = compile_library(tmp_path / "front.so", MAKES_FILES_IN_MEMORY)
    out = tmp_path / "release"
    out.mkdir()
    return front_wheel.make(program, b"Licence\n", {"libboost-dev": "1:1.74+ds1"}, out)


def test_pip_installs_the_front_with_its_notices(
    tmp_path: pathlib.Path, front: pathlib.Path
) -> None:
    release.check(front)
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", f"--target={target}"]
    subprocess.run([*pip, str(front)], check=True, capture_output=True)
    assert os.access(target / "tensorflow_multistream_front" / "front", os.X_OK)
    texts = {
        path.read_text() for path in target.glob("*.dist-info/licenses/**/*") if path.is_file()
    }
    assert texts == {"Licence\n", "Copyright\n"}
    with pytest.raises(BuildError, match="other/copyright is missing"):
        front_wheel.make(target / "a", b"", {"other": "1"}, tmp_path)


def test_the_front_has_the_same_bytes_whatever_the_umask_is(
    tmp_path: pathlib.Path, front: pathlib.Path
) -> None:
    made = []
    for umask in (0o022, 0o077):
        before = os.umask(umask)
        try:
            out = tmp_path / f"{umask:o}"
            out.mkdir()
            program = compile_library(out / "front.so", MAKES_FILES_IN_MEMORY)
            made.append(front_wheel.make(program, b"Licence\n", {"libboost-dev": "1"}, out))
        finally:
            os.umask(before)
    assert sha256_of(made[0]) == sha256_of(made[1])
    with zipfile.ZipFile(made[1]) as archive:
        modes = {file.filename: file.external_attr >> 16 & 0o777 for file in archive.filelist}
    assert modes.pop("tensorflow_multistream_front/front") == 0o755
    assert all(mode & 0o644 == 0o644 for mode in modes.values()), modes


@pytest.mark.usefixtures("repository")
def test_a_release_has_the_front(front: pathlib.Path) -> None:
    release.write([front], front.parent, "HEAD")
    bill = json.loads((front.parent / f"{front.name}.cdx.json").read_text())
    assert bill["metadata"]["component"]["hashes"][0]["content"] == sha256_of(front)
    (library,) = bill["components"]
    assert (library["name"], library["version"]) == ("libboost-dev", "1:1.74+ds1")
    assert front.name in (front.parent / "index.html").read_text()
    assert front.name in (front.parent / "SHA256SUMS").read_text()


@pytest.fixture
def repository(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A repository with three commits: sources are tested without theirs, too."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "patches").symlink_to(release.ROOT / "patches")
    monkeypatch.setattr(release, "ROOT", root)
    release.git("init", "--quiet")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    changelog = root / "docs" / "changelog.md"
    changelog.parent.mkdir()
    entries = ""
    for number, what in enumerate(("first", "second", "third"), 1):
        entries = f"## 2026-01-0{number}\n\n- The [{what}](a.md#b)\n  change.\n\n{entries}"
        changelog.write_text(f"# Changelog\n\nText.\n\n{entries}")
        release.git("add", "docs")
        release.git(*identity, "commit", "--quiet", "-m", what)
    return root


@pytest.mark.usefixtures("repository")
def test_all_that_is_written_is_the_same_each_time(tmp_path: pathlib.Path) -> None:
    written = []
    for name in ("a", "b"):
        wheel = make_wheel(tmp_path / name)
        release.write([wheel], wheel.parent, "HEAD")
        written.append({file.name: file.read_bytes() for file in wheel.parent.iterdir()})
        done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=wheel.parent, check=False)
        assert done.returncode == 0
    assert written[0] == written[1]
    names = {wheel.name, f"{wheel.name}.cdx.json", "RELEASE_NOTES.md", "SHA256SUMS", "index.html"}
    assert written[0].keys() == names


def test_pip_finds_the_wheel_in_the_page_and_checks_its_hash(tmp_path: pathlib.Path) -> None:
    wheel = make_wheel(tmp_path / "release")
    page = wheel.parent / "index.html"
    page.write_text(release.index_page([wheel]))

    def download() -> subprocess.CompletedProcess[str]:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-index", "--no-cache-dir"]
        of = ["--python-version", "3.11", "--platform", "manylinux_2_5_x86_64"]
        where = ["--find-links", str(page), "--dest", str(tmp_path / "found")]
        command = [*pip, *of, "--only-binary=:all:", *where, f"tensorflow=={BASE}+{LOCAL_VERSION}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = download()
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found" / wheel.name).read_bytes() == wheel.read_bytes()
    (tmp_path / "found" / wheel.name).unlink()
    make_wheel(wheel.parent, metadata=METADATA.replace("# TensorFlow", "# Another"))
    assert "hash" in download().stderr.lower()


@pytest.mark.usefixtures("repository")
def test_the_notes_have_each_change_since_the_revision() -> None:
    release.git("tag", "v1", "HEAD~1")
    notes = release.release_notes([], "")
    assert notes.endswith("## Changes since v1\n\n### 2026-01-03\n\n- The third\n  change.\n")
    notes = release.release_notes([], "HEAD~2")
    assert "### 2026-01-03\n\n- The third\n  change.\n\n### 2026-01-02\n\n- The sec" in notes
    assert "first" not in notes
    assert release.release_notes([], "HEAD").endswith("since HEAD\n\nNone.\n")
    with pytest.raises(BuildError, match="no-such"):
        release.release_notes([], "no-such")


@pytest.mark.parametrize("name", list(RELEASES))
def test_wheels_of_all_releases_are_known(name: str) -> None:
    wheel = pathlib.Path(f"tensorflow-{name}+{LOCAL_VERSION}-cp311-cp311-manylinux_2_27_x86_64.whl")
    assert release.parse_name(wheel) == (name, "cp311")


def test_another_wheel_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BuildError, match="is not a wheel of version"):
        release.parse_name(tmp_path / f"tensorflow-{BASE}+other-cp311-cp311-a.whl")
