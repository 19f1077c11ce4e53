# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The examples are short, run as they stand on emulated GPUs, and give what one stream gives."""

import pathlib
import re

import pytest
from multistream.testing import kit

FOLDER = pathlib.Path(__file__).resolve().parent
CLIENT = FOLDER.parent / "tensorflow/examples/multistream/custom_client.cc"
MOST_LINES = 120
VARIABLE = re.compile(r'^os\.environ\.setdefault\("(\w+)", "(.+)"\)$', re.MULTILINE)

# By program, expressions that lines of its output match, each one a whole line.
PRINTED = {
    "copy_next_batch.py": [
        r"group 0: 24 steps",
        r"group 1: 24 steps",
        r"the losses are those of one batch after the other: True",
    ],
    "deeprec_program.py": [
        r"streams used: \[0, 1, 2\]; loss 30\.\d+ -> 0\.0\d+",
        r"the losses are those of one stream: True",
    ],
    "pin_tenants.py": [
        r"batch jobs: 50 steps on group 1, for 50 calls",
        r"visitors: 50 steps on group 2, for 50 calls",
        r"in a hurry: 50 steps on group 3, for 50 calls",
        r"all answers are those of one thread",
    ],
    "serve_saved_model.py": [
        *(rf"group {group}: [1-9]\d* steps" for group in range(4)),
        r"0 of 200 answers differ from those of one thread",
    ],
    "split_by_policy.py": [
        r"cost: 60 of 60 results are those of one stream, \d+ waits of groups",
        r"full_graph, always: 60 of 60 results are those of one stream, [1-9]\d* waits of groups",
    ],
    "train_branches.py": [
        r"groups used: \[0, 1, 2, 3\]; loss 0\.8\d+ -> 0\.1\d+",
        r"the losses are those of one stream: True",
    ],
    "two_gpus.py": [
        *(rf"GPU {gpu}: groups \[0, 1, 2\] used" for gpu in range(2)),
        r"loss 0\.7\d+ -> 0\.2\d+",
        r"the losses are those of one stream a GPU: True",
    ],
}


def test_every_example_is_run_here_and_is_short_and_no_harness() -> None:
    programs = [path for path in sorted(FOLDER.glob("*.py")) if "_test" not in path.name]
    assert [path.name for path in programs] == sorted(PRINTED)
    for path in (*programs, CLIENT):
        text = path.read_text()
        assert len(text.splitlines()) <= MOST_LINES, path
        assert "argparse" not in text, path


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_example_gives_what_one_stream_gives(name: str) -> None:
    emulated = {"TF_MULTI_STREAM_EMULATED_GPUS": "2" if name == "two_gpus.py" else "1"}
    # TensorFlow is imported before the program begins, and with it the program's own variables.
    own = dict(VARIABLE.findall((FOLDER / name).read_text()))
    emulated |= {"TF_MULTI_STREAM_SANITIZER": "abort", **own}
    done = kit.run_program([FOLDER / name], None, **emulated)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    lines = done.stdout.splitlines()
    for expression in PRINTED[name]:
        assert any(re.fullmatch(expression, line) for line in lines), (expression, lines)
