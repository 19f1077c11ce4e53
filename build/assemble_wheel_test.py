# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import csv
import io
import pathlib
import zipfile
from email import message_from_string

import pytest

import assemble_wheel
import fakes
from build_error import BuildError

DIST_INFO = "tensorflow-2.21.0+multistream.1.dist-info"


def assemble(folder: pathlib.Path, **changes: dict[str, bytes]) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    library = fakes.make_library(
        folder / "libtensorflow_multistream.so",
        {"libtensorflow_cc.so.2": [], "libstdc++.so.6": ["GLIBCXX_3.4.30"]},
    )
    return assemble_wheel.assemble(
        stock=fakes.make_wheel(folder),
        runtime=library,
        changed=changes.get("changed", {"tensorflow/__init__.py": b"import loader\n"}),
        added=changes.get("added", {"tensorflow/python/multistream/groups/stats.py": b"x = 1\n"}),
        license_text=b"Apache License\n",
        out=folder,
    )


def read(wheel: pathlib.Path, member: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(member).decode()


def test_name_tells_version_python_and_the_platform_that_the_runtime_needs(
    tmp_path: pathlib.Path,
) -> None:
    wheel = assemble(tmp_path)
    assert wheel.name == "tensorflow-2.21.0+multistream.1-cp311-cp311-manylinux_2_35_x86_64.whl"
    assert "Tag: cp311-cp311-manylinux_2_35_x86_64\n" in read(wheel, f"{DIST_INFO}/WHEEL")


def test_record_lists_every_file_with_its_hash_and_size(tmp_path: pathlib.Path) -> None:
    wheel = assemble(tmp_path)
    record = {
        row[0]: row[1:] for row in csv.reader(io.StringIO(read(wheel, f"{DIST_INFO}/RECORD")))
    }
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        assert sorted(files) == sorted(record)
        for name in files:
            content = archive.read(name)
            expected = [fakes.digest(content), str(len(content))]
            assert record[name] == (["", ""] if name.endswith("/RECORD") else expected)


def test_same_inputs_give_the_same_bytes(tmp_path: pathlib.Path) -> None:
    first, second = assemble(tmp_path / "first"), assemble(tmp_path / "second")
    assert first.read_bytes() == second.read_bytes()


def test_has_everything_of_the_stock_wheel(tmp_path: pathlib.Path) -> None:
    wheel = assemble(tmp_path)
    same = ("tensorflow/libtensorflow_cc.so.2", "tensorflow/include/tensorflow/core/a.h")
    with zipfile.ZipFile(tmp_path / fakes.STOCK_NAME) as stock:
        assert [read(wheel, name) for name in same] == [stock.read(name).decode() for name in same]
        expected = {name.replace(fakes.DIST_INFO, DIST_INFO) for name in stock.namelist()}
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) - expected == {
            "tensorflow/python/multistream/groups/stats.py",
            "tensorflow/libtensorflow_multistream.so",
            f"{DIST_INFO}/licenses/LICENSE",
            f"{DIST_INFO}/MODIFICATIONS",
        }
        assert expected <= set(archive.namelist())


def test_metadata_keeps_the_extras_and_says_that_this_is_a_modified_tensorflow(
    tmp_path: pathlib.Path,
) -> None:
    metadata = message_from_string(read(assemble(tmp_path), f"{DIST_INFO}/METADATA"))
    assert metadata["Version"] == "2.21.0+multistream.1"
    assert metadata.get_all("Provides-Extra") == ["and-cuda", "serve"]
    needs = metadata.get_all("Requires-Dist") or []
    serve = [need.partition(";")[0] for need in needs if need.endswith('; extra == "serve"')]
    assert len(needs) == 2 + len(serve)
    # What is tested, and what TensorFlow itself needs.
    root = pathlib.Path(__file__).resolve().parents[1]
    tested = (root / "examples/serving/requirements.txt").read_text().splitlines()
    names = {line.partition("==")[0] for line in tested if not line.startswith("#")}
    assert names - {"grpcio"} == set(serve)
    assert "This is a modified TensorFlow 2.21.0" in metadata.get_payload()


def test_changed_files_carry_a_notice_and_are_listed(tmp_path: pathlib.Path) -> None:
    wheel = assemble(tmp_path)
    assert read(wheel, "tensorflow/__init__.py") == (
        f"# Changed by the Multi-Stream TensorFlow Authors: see MODIFICATIONS in {DIST_INFO}.\n"
        "import loader\n"
    )
    modifications = read(wheel, f"{DIST_INFO}/MODIFICATIONS")
    assert "Files changed:\n  tensorflow/__init__.py\n" in modifications
    assert "  tensorflow/libtensorflow_multistream.so\n" in modifications


@pytest.mark.parametrize(
    ("change", "path"),
    [("changed", "tensorflow/gone.py"), ("added", "tensorflow/__init__.py")],
)
def test_only_files_of_the_stock_wheel_change_and_only_others_are_added(
    tmp_path: pathlib.Path, change: str, path: str
) -> None:
    with pytest.raises(BuildError, match=f"{path} is to be {change}"):
        assemble(tmp_path, **{change: {path: b""}})
