# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's source tree gets the runtime whole, or stays as it is and an error says why."""

import ast
import hashlib
import pathlib
import re
import tarfile
import zipfile

import pytest

import check_patches
import check_replacements
import patch_series
import source_tree
from build_error import BuildError
from fakes import make_zip
from releases import BASE
from stock_wheel import sha256_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERIES = ROOT / "patches" / BASE / "source"
VERSION = 'TF_VERSION = "{}"\n'
TEXT = "".join(f"line {i}\n" for i in range(1, 11))
PATCH = """\
Hooks a function.

--- a/tensorflow/core/a.cc
+++ b/tensorflow/core/a.cc
@@ -5,2 +5,3 @@
 line 5
+hook
 line 6
"""


def write(tree: pathlib.Path, path: str, text: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """TensorFlow's sources, as far as the layout looks at them."""
    folder = tmp_path / "tensorflow-source"
    write(folder, "tensorflow/tf_version.bzl", VERSION.format(BASE))
    write(
        folder, "tensorflow/workspace3.bzl", 'tf_vendored(name = "xla", path = "third_party/xla")'
    )
    write(folder, "tensorflow/core/a.cc", TEXT)
    write(folder, "tensorflow/BUILD", "# TensorFlow's\n")
    return folder


@pytest.fixture
def repository(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A repository with one source patch, and the rest of this one's."""
    root = tmp_path / "repository"
    series = root / "patches" / BASE / "source"
    write(series, "0001-hook.patch", PATCH)
    write(series, "series", "0001-hook.patch\n")
    (root / "build").mkdir()
    (root / "build" / "source").symlink_to(ROOT / "build" / "source")
    (root / "tensorflow").symlink_to(ROOT / "tensorflow")
    monkeypatch.setattr(source_tree, "ROOT", root)
    return root


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr("sys.argv", ["source_tree.py", *map(str, arguments)])
    source_tree.main()


@pytest.fixture
def archive(
    tree: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """The release's archive, which has the known hash."""
    path = tmp_path / "v.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tree, f"tensorflow-{BASE}")
    known = source_tree.Archive(path.as_uri(), sha256_of(path))
    monkeypatch.setitem(source_tree.ARCHIVES, BASE, known)
    return path


@pytest.mark.usefixtures("repository")
def test_lays_out_a_copy(
    tree: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run(monkeypatch, "--source", tree, "--out", out)
    assert (out / "tensorflow/core/a.cc").read_text() == TEXT.replace("line 6", "hook\nline 6")
    assert (tree / "tensorflow/core/a.cc").read_text() == TEXT
    assert 'XLA = "@xla"' in (out / "build/xla.bzl").read_text()
    assert (out / "tensorflow/BUILD").read_text() == "# TensorFlow's\n"
    # Bazel would take it, not TensorFlow's.
    assert not (out / "tensorflow/BUILD.bazel").exists()
    runtime = out / "tensorflow/core/common_runtime/multistream"
    assert (runtime / "hooks/source_hooks.cc").is_file()
    assert (runtime / "rooms.bzl").is_file()
    python = out / "tensorflow/python/multistream"
    assert "libtensorflow_cc.so" in (python / "runtime_library.py").read_text()
    assert (python / "BUILD").is_file()
    exports = (python / "exports.py").read_text()
    ast.parse(exports)
    assert "from tensorflow.python.multistream.trace.trace import trace\n" in exports
    assert 'tf_export("cuda.trace")(trace)\n' in exports
    assert 'tf_export("stream")(stream)\n' in exports
    assert not list(python.rglob("*_test.py"))
    assert (out / "build/tensorflow.bzl").read_text() == (
        ROOT / "build/source/tensorflow.bzl"
    ).read_text()


@pytest.mark.usefixtures("repository")
def test_unpacks_the_release(
    archive: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFMS_CACHE", str(tmp_path / "cache"))
    run(monkeypatch, "--out", tmp_path / "out")
    assert "hook" in (tmp_path / "out/tensorflow/core/a.cc").read_text()
    # The second time it is in the cache.
    archive.unlink()
    run(monkeypatch, "--out", tmp_path / "again")


def test_the_wrong_archive_is_refused_and_not_kept(
    archive: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    digest, cache = sha256_of(archive), tmp_path / "cache"
    wrong = "0" * 64
    with pytest.raises(BuildError, match=f"SHA-256 {digest}, not {wrong}.*\n.*--sha256"):
        source_tree.fetch(BASE, cache, wrong)
    assert not list(cache.rglob("*.gz"))
    assert source_tree.fetch(BASE, cache).is_file()
    with pytest.raises(BuildError, match="cannot be unpacked"):
        source_tree.unpack(pathlib.Path(__file__), tmp_path / "out")
    archive.unlink()  # as without a network
    with pytest.raises(BuildError, match="cannot be downloaded.*\n.*--source"):
        source_tree.fetch(BASE, cache, digest.upper())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("tensorflow/tf_version.bzl", None), "not TensorFlow's source tree.*tf_version.bzl"),
        (("tensorflow/tf_version.bzl", VERSION.format("2.20.0")), "is TensorFlow 2.20.0"),
        (("tensorflow/core/a.cc", "other\n"), "0001-hook.patch does not apply.*a.cc, hunk 1"),
        (("tensorflow/core/a.cc", None), "has no tensorflow/core/a.cc"),
        (("tensorflow/workspace3.bzl", "none"), "which repository third_party/xla is"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_another_tree_is_refused(
    change: tuple[str, str | None],
    message: str,
    tree: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, text = change
    if text is None:
        (tree / path).unlink()
    else:
        write(tree, path, text)
    with pytest.raises(BuildError, match=message):
        run(monkeypatch, "--source", tree, "--out", tmp_path / "out")


def test_a_folder_that_is_there_is_not_touched(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tree.rglob("*"))
    with pytest.raises(BuildError, match="is there already"):
        run(monkeypatch, "--source", tree, "--out", tree)
    assert sorted(tree.rglob("*")) == before


def test_every_file_of_the_series_has_a_known_text() -> None:
    read = {"tensorflow/core/kernels/gpu_utils.h": "another"}.get
    assert source_tree.check_texts(SERIES, read) == ["tensorflow/core/kernels/gpu_utils.h"]


def test_a_patch_must_fit_the_wheels_text(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    series = repository / "patches" / BASE / "source"

    def check_with(text: str) -> patch_series.Applied:
        path = make_zip(tmp_path / "a.whl", {"tensorflow/include/tensorflow/core/a.cc": text})
        with zipfile.ZipFile(path) as wheel:
            return check_patches.check_source(wheel, series, "a.whl")

    header = "file,sha256,text\n"
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    write(series, "checked.csv", f"{header}tensorflow/core/a.cc,{digest},wheel\n")
    applied = check_with(TEXT)
    assert (len(applied.changed), applied.absent) == (1, {})
    with pytest.raises(BuildError, match="a.cc.* is not a.whl's text"):
        check_with("new\n" + TEXT)
    write(series, "checked.csv", header)
    with pytest.raises(BuildError, match="a.cc is not in it"):
        check_with(TEXT)


def added(name: str) -> str:
    lines = (SERIES / name).read_text().splitlines()
    return "\n".join(line[1:] for line in lines if re.match(r"\+(?!\+\+ b/)", line))


def test_the_protos_fields_are_those_of_the_wheel() -> None:
    module = ast.parse(
        (ROOT / "tensorflow/python/multistream/sessions/message_fields.py").read_text()
    )
    known = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant | ast.Tuple)
    }
    text = added("0013-config-fields.patch")
    fields = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+);", text)}
    policies = {name: number for number, name in enumerate(known["POLICIES"])}
    assert fields == {
        "use_multi_stream": known["USE_MULTI_STREAM"],
        "multi_stream_opts": known["MULTI_STREAM_OPTS"],
        "cuda_graph_enable_jit": known["CUDA_GRAPH_ENABLE_JIT"],
        "multi_stream_num": 1,
        "partition_policy": 2,
        **policies,
    }
    # 0 streams are an error, and none are not.
    assert "optional int32 multi_stream_num" in text


def test_the_rules_are_those_of_the_wheel_build() -> None:
    def public(path: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for node in ast.parse((ROOT / path).read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = ast.dump(node.args)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = None
        return {name: what for name, what in found.items() if not name.startswith("_")}

    source, wheel = public("build/source/tensorflow.bzl"), public("build/tensorflow.bzl")
    assert source == wheel


def test_each_replaced_function_of_the_wheel_build_has_a_hook() -> None:
    patterns = check_replacements.read_patterns(
        ROOT / "tensorflow/core/common_runtime/multistream/exports.lds", BASE
    )
    replaced = [name for name in patterns if not re.search("TFMS_|11multistream", name)]
    hooks = "".join(added(name) for name in patch_series.read_series(SERIES) if "hook" in name)
    hooked = re.findall(r"Hook<\s*&(?:\w+::)*(\w+)>", hooks)

    def is_of(function: str, symbol: str) -> bool:  # which is mangled, or of C
        return f"{len(function)}{function}" in symbol or function == symbol

    assert replaced
    assert [s for s in replaced if not any(is_of(f, s) for f in hooked)] == []
    assert [f for f in hooked if not any(is_of(f, s) for s in replaced)] == []
