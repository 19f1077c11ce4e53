#!/usr/bin/env python3
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The programs serve and train on all groups, compare results, and name what is wrong.

Uses Python's standard library alone, so that Bazel can run it without TensorFlow's wheel.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HERE = "tensorflow/examples/multistream"
MODEL = f"{HERE}/data/model_test.pbtxt"
CONFIG = f"{HERE}/data/config_proto"
SERVE = [MODEL, "1", "input0", "1", "output", "16", "30", "4", CONFIG]
ENVIRONMENT = {
    **os.environ,
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_GPU_STREAM_GROUP_COUNT": "4",
    "TF_MULTI_STREAM_EMULATED_GPUS": "1",
    "TF_MULTI_STREAM_SANITIZER": "abort",
}
GRAPH = """
node { name: "ids" op: "Placeholder" attr { key: "dtype" value { type: %s } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: %d } } } } }
node { name: "random" op: "RandomUniform" input: "shape"
       attr { key: "T" value { type: DT_INT32 } } attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } }
                                            int_val: 5 } } } }
"""


class ProgramsTest(unittest.TestCase):
    """Runs the programs that Bazel puts beside this test."""

    __test__ = False  # pytest leaves it to Bazel

    def _run(self, status: int, parts: list[str], *command: str, **variables: str) -> str:
        """Returns what a program printed, which has these parts, and has ended with this status."""
        done = subprocess.run(
            [f"{HERE}/{command[0]}", *command[1:]],
            env=ENVIRONMENT | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, status, done.stdout)
        for part in parts:
            self.assertIn(part, done.stdout)
        return done.stdout

    def _steps(self, text: str) -> int:
        """Returns the steps of all groups, each of which has some."""
        steps = [int(n) for n in re.findall(r"group \d: (\d+) steps", text)]
        self.assertEqual((len(steps), min(steps) > 0), (4, True), text)
        return sum(steps)

    def test_custom_client_uses_all_groups_and_gets_what_one_thread_gets(self) -> None:
        text = self._run(0, ["0 of 400 answers differ"], "custom_client", MODEL)
        self.assertEqual(self._steps(text), 800)
        self._run(2, ["usage: "], "custom_client")

    def test_inference_runs_every_query_on_a_group_and_verifies_each(self) -> None:
        verify = ["multistream_inference", *SERVE, "--verify"]
        right = "verified 200 results, 0 wrong"
        text = self._run(0, ["120 queries in", "times mean nothing", right], *verify)
        self.assertEqual(self._steps(text), 120)
        one = self._run(0, [right], *verify, TF_GPU_STREAM_GROUP_COUNT="1")
        fingerprint = re.compile("fingerprint .*")
        self.assertEqual(fingerprint.findall(text), fingerprint.findall(one))
        text = self._run(0, ["no stream groups"], "multistream_inference_stock", *SERVE)
        self.assertNotIn("verified", text)

    def test_inference_finds_wrong_results_and_names_a_bad_model(self) -> None:
        good = GRAPH % ("DT_INT64", 24)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.pbtxt")
            for graph, names, part in (
                (good, "1 ids 1 random --verify", "verified 200 results, 200 wrong"),
                (good, "1 random 1 random", "input_name 'random' is no placeholder of the graph"),
                (GRAPH % ("DT_STRING", 2), "1 ids 1 random", "'ids' is of type string"),
                (GRAPH % ("DT_BOOL", -1), "1 ids 1 random", "'ids' is of shape [16,?]"),
                ("node {\n  nam: 1 }", "1 a 1 b", "model.pbtxt' is no frozen GraphDef: line 2"),
            ):
                path.write_text(graph)
                line = ["multistream_inference", str(path), *names.split(), *SERVE[-4:]]
                self._run(1, [part], *line)
        self._run(1, ["model_path '/no/m.pb'"], "multistream_inference", "/no/m.pb", *SERVE[1:])
        self._run(1, ["config_path", "line 1"], "multistream_inference", *SERVE[:-1], MODEL)

    def test_inference_names_a_bad_argument(self) -> None:
        for line, part in (
            ("", "model_path is missing"),
            ("m 2 a", "input_name 2 of 2 is missing"),
            ("m 1 a 1 b 1 2 1025 c", "number_of_threads: '1025' is not a whole number from 1 to 1"),
            ("m 1 a 1 b 1 2 3 c --verbose", "'--verbose' is not an option"),
        ):
            self._run(2, [part], "multistream_inference", *line.split())
        self._run(0, ["number_of_threads"], "multistream_inference", "--help")

    def test_training_gives_the_losses_of_one_stream(self) -> None:
        small = ["multistream_training", "--steps=40", "--layers=3", "--width=16"]
        parts = ["the same losses in all 50 steps", "mean nothing", "sanitizer reports: 0"]
        for reduce in ("true", "false"):
            variables = {"TF_NODE_LEVEL_MULTISTREAM": "true", "TF_REDUCE_STREAM_WAIT": reduce}
            text = self._run(0, parts, *small, **variables)
            peaks = [float(peak) for peak in re.findall(r"group \d: peak ([\d.]+)", text)]
            self.assertEqual((len(peaks), min(peaks) > 0), (4, True), text)
        self.assertNotIn("stream groups:", self._run(0, ["There is one stream"], *small))
        for wrong in ("--layers=0", "--layers=x", "--depth=2"):
            self._run(2, ["--layers="], "multistream_training", wrong)


if __name__ == "__main__":
    unittest.main()
