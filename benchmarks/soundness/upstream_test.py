# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""upstream.py names each test that ends otherwise than on stock, of a made-up checkout here."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import upstream

BY_ITSELF = """
import os, unittest

groups = os.environ.get("TF_GPU_STREAM_GROUP_COUNT")
node = os.environ.get("TF_NODE_LEVEL_MULTISTREAM")

class Steps(unittest.TestCase):
    def testA(self):
        assert "TF_CPP_VMODULE" not in os.environ
    def testB(self):
        self.assertIsNone(groups, "one stream only")
    def testC(self):
        if node:
            os.abort()
    def testD(self):
        with self.subTest(1):
            self.assertIsNone(node)
    def testE(self):
        if groups and not node:
            self.skipTest("no")
    def testF(self):
        import neighbour
    def testG(self):
        if groups:
            raise KeyError("lost")

if __name__ == "__main__":
    unittest.main()
"""
BY_PYTEST = """
import os, pytest

class TestLayer:
    @pytest.mark.parametrize("value", [1, 2])
    def test_value(self, value):
        assert value < 2 or "TF_GPU_STREAM_GROUP_COUNT" not in os.environ
    @pytest.mark.skipif(True, reason="always")
    def test_skipped(self):
        assert False
"""
UNREADABLE = """
import os
if os.environ.get("TF_MULTI_STREAM_CAPTURE") == "auto":
    os.kill(os.getpid(), 9)
raise ImportError("no such module")  # __main__
"""
HANGS = """
import time, unittest

class Waits(unittest.TestCase):
    def testB(self):
        time.sleep(60)
    def testC(self):
        pass

if __name__ == "__main__":
    unittest.main()
"""
FILES = {
    "tensorflow/python/steps_test.py": BY_ITSELF,
    "tensorflow/python/import_test.py": UNREADABLE,
    "keras/src/layer_test.py": BY_PYTEST,
}


@pytest.fixture
def arguments(tmp_path: pathlib.Path) -> list[str]:
    """Two checkouts with their list, and that nothing is known."""
    for file, text in {**FILES, "tensorflow/python/neighbour.py": ""}.items():
        path = tmp_path / file.split("/", 1)[0] / "of" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "files.txt").write_text("# What runs.\n" + "\n".join(FILES) + "\n")
    (tmp_path / "known.csv").write_text("file,test,mode,end,gpu,reason\n")
    options = {name: str(tmp_path / name) for name in ("files.txt", "known.csv", "logs")}
    checkouts = [str(tmp_path / name / "of") for name in ("tensorflow", "keras")]
    named = [f"--{name.split('.')[0]}={path}" for name, path in options.items()]
    return [*checkouts, *named]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed of tests that ended otherwise, without the paths of the files."""
    said = capsys.readouterr().out
    part = said[said.index("ended otherwise") :].splitlines()[:-1]
    return [line.rsplit("_test.py ", 1)[-1].strip() for line in part]


def test_each_test_that_ends_otherwise_is_named_with_both_ends_and_the_reason(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CPP_VMODULE", "inherited=1")
    assert upstream.main(arguments) == 1
    said = lines(capsys)
    assert said[0] == "ended otherwise than on stock: 14 tests, of which 14 are not known"
    one_stream = "NEW: '4' is not None : one stream only"
    for mode in ("groups", "capture"):
        first = said.index(f"Steps.testB: passed on stock, failed in mode {mode}")
        assert said[first + 1 : first + 6] == [
            one_stream,
            f"Steps.testE: passed on stock, skipped in mode {mode}",
            "NEW: no",
            f"Steps.testG: passed on stock, error in mode {mode}",
            "NEW: 'lost'",
        ]
    first = said.index("Steps.testB: passed on stock, failed in mode node")
    assert said[first + 1 : first + 8] == [
        one_stream,
        "Steps.testC: passed on stock, crashed in mode node",
        "NEW: exit status -6",
        "Steps.testD: passed on stock, failed in mode node",
        "NEW: 'true' is not None",
        "Steps.testG: passed on stock, error in mode node",
        "NEW: 'lost'",
    ]
    assert "TestLayer.test_value[2]: passed on stock, failed in mode node" in said
    assert "(the file): error on stock, crashed in mode capture" in said


def test_hang_is_charged_to_its_test_and_the_others_run(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "hang_test.py"
    path.write_text(HANGS)
    ends = upstream.run_file(path, "groups", False, 5, tmp_path / "log")
    assert ends == {"Waits.testB": ("timed out", "after 5 s"), "Waits.testC": ("passed", "")}


def test_what_is_known_counts_only_where_it_is_known(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    known = tmp_path / "known.csv"
    only = [*arguments, "--only=layer", "--modes=groups,node"]
    line = "keras/src/layer_test.py,*test_value*,*,failed,{},a reason\n"
    known.write_text(known.read_text() + line.format("emulated"))
    assert upstream.main(only) == 0
    assert "known: a reason" in lines(capsys)
    known.write_text(known.read_text().replace("emulated", "gpu"))
    assert upstream.main(only) == 1
    assert "NEW: AssertionError: assert (2 < 2" in lines(capsys)[2]


def test_checkout_of_something_else_is_a_wrong_argument(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "tensorflow/of/tensorflow/python/steps_test.py").unlink()
    assert upstream.main(arguments) == 2
    assert (
        f"CHECKOUT '{arguments[0]}' has no tensorflow/python/steps_test.py"
        in capsys.readouterr().err
    )
    (tmp_path / "empty").mkdir()
    assert upstream.main([str(tmp_path / "empty"), *arguments[2:]]) == 2
    assert "has no tensorflow/python/steps_test.py." in capsys.readouterr().err
