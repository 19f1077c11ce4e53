# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Tests of benchmark_policies.py with a child that only pretends, and of its models.

The models run on an emulated GPU, in sizes that take moments, with the stream sanitizer.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess
import sys
from typing import Any

import benchmark_policies
import numpy as np
import pytest
from emulated_process import NODE_LEVEL, run_python
from policy_setups import SETUPS, environment_of

TINY = [
    *("--batch", "4", "--image", "8", "--channels", "4", "--blocks", "2", "--cells", "2"),
    *("--lookups", "6", "--rows", "20", "--dim", "4", "--warmup", "2", "--steps", "28"),
]

# Its figures depend on the setup and on how often it has been called with it.
CHILD = """
import json, os, pathlib, sys
options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if "=" in a)
setup = options["setups"]
calls = pathlib.Path({folder!r}, setup + options["models"] + options["modes"])
number = len(calls.read_text()) if calls.exists() else 0
calls.write_text("x" * (number + 1))
if setup == {fails!r}:
    print("first of its lines\\nI0000 noise", file=sys.stderr)
    sys.exit("device lost")
if setup == {sleeps!r}:
    import time
    time.sleep(60)
print("TensorFlow says something")
print("W0000 x.cc:1] set and have no effect: TF_MULTI_STREAM_POLICY", file=sys.stderr)
groups = int(os.environ.get("TF_GPU_STREAM_GROUP_COUNT", "1"))
marks = setup == "hand_marks"
print(json.dumps({{
    "step_ms": [5.0, 9.0, 4.0][number] / (2 if marks else 1),
    "waits": 12.5 if marks else 0.0,
    "groups": list(range(groups)) if marks else [0],
    "sha256": "other" if (setup, number) == {differs!r} else "same",
    "first": 1.0,
    "last": 0.5,
    "sanitizer_reports": 3 if setup == {reports!r} else None,
}}))
"""
SHORT = ["--models", "dlrm", "--modes", "training", "--setups", "stock,one_stream,hand_marks"]


@pytest.fixture
def pretend(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes runs of benchmark_policies use a child that pretends; its arguments say how."""
    for name in NODE_LEVEL:
        monkeypatch.delenv(name, raising=False)

    def make(
        fails: str = "", sleeps: str = "", reports: str = "", differs: tuple[str, int] = ("", 0)
    ) -> None:
        path = tmp_path / "child.py"
        wrong = {"fails": fails, "sleeps": sleeps, "reports": reports, "differs": differs}
        path.write_text(CHILD.format(folder=str(tmp_path), **wrong))
        monkeypatch.setattr(benchmark_policies, "CHILD", (sys.executable, str(path)))

    return make


def _rows(output: str) -> list[list[str]]:
    lines = output.splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_table_has_the_median_of_the_rounds_for_each_setup(
    pretend: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend()
    path = tmp_path / "all.json"
    assert benchmark_policies.main([*SHORT, "--groups", "3", "--json", str(path)]) == 0
    captured = capsys.readouterr()
    assert _rows(captured.out)[2:] == [
        ["dlrm", "training", "stock", "5.000", "1.00", "", "", "yes"],
        ["dlrm", "training", "one_stream", "5.000", "1.00", "0.0", "1", "yes"],
        ["dlrm", "training", "hand_marks", "2.500", "2.00", "12.5", "3", "yes"],
    ]
    assert captured.err.count("round ") == 9
    assert "round 2 of 3: dlrm, training, hand_marks: 4.500 ms" in captured.err
    assert captured.err.count("have no effect: TF_MULTI_STREAM_POLICY") == 1
    everything = json.loads(path.read_text())
    assert everything["options"]["groups"] == 3
    assert [figures["step_ms"] for figures in everything["results"][1]["figures"]] == [5, 9, 4]


def test_rounds_interleave_the_setups(pretend: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pretend()
    assert benchmark_policies.main([*SHORT, "--rounds", "2", "--models", "dlrm,nasnet"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("round")]
    order = [tuple(line.split(": ")[1].split(", ")) for line in lines]
    assert [(model, setup) for model, _, setup in order] == [
        *(("nasnet", name) for name in ("stock", "one_stream", "hand_marks")),
        *(("dlrm", name) for name in ("stock", "one_stream", "hand_marks")),
        *(("nasnet", name) for name in ("one_stream", "hand_marks", "stock")),
        *(("dlrm", name) for name in ("one_stream", "hand_marks", "stock")),
    ]


def test_emulated_gpu_has_no_stock_setup(
    pretend: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend()
    monkeypatch.setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1")
    assert benchmark_policies.main([*SHORT, "--rounds", "1"]) == 0
    captured = capsys.readouterr()
    assert [row[2] for row in _rows(captured.out)[2:]] == ["one_stream", "hand_marks"]
    assert "no stock: stock TensorFlow has no emulated GPU" in captured.err
    with pytest.raises(SystemExit):
        benchmark_policies.main(["--setups", "stock"])
    assert "--setups stock needs a GPU" in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, 1])
def test_other_bits_in_any_round_are_named_and_fail(
    pretend: Any, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    pretend(differs=("hand_marks", number))
    assert benchmark_policies.main([*SHORT, "--rounds", "2"]) == 1
    captured = capsys.readouterr()
    assert [row[7] for row in _rows(captured.out)[2:]] == ["yes", "yes", "no"]
    assert "dlrm, training, hand_marks: its results are not the bits of stock" in captured.err


def test_other_bits_of_the_first_setup_itself_fail(
    pretend: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(differs=("stock", 1))
    assert benchmark_policies.main([*SHORT, "--rounds", "2"]) == 1
    assert [row[7] for row in _rows(capsys.readouterr().out)[2:]] == ["no", "yes", "yes"]


def test_failed_child_is_shown_and_the_others_still_run(
    pretend: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(fails="one_stream")
    assert benchmark_policies.main([*SHORT, "--rounds", "1"]) == 1
    captured = capsys.readouterr()
    assert [row[3:] for row in _rows(captured.out)[2:]] == [
        ["5.000", "", "", "", "yes"],
        ["failed", "", "", "", ""],
        ["2.500", "", "12.5", "4", "yes"],
    ]
    assert "round 1 of 1: dlrm, training, one_stream: failed" in captured.err
    problem = captured.err[captured.err.index("dlrm, training, one_stream: exit status 1") :]
    assert "\n    first of its lines\n    device lost\n" in problem
    by_hand = problem.splitlines()[-1]
    assert "run it alone to see all of it: env " in by_hand
    assert "TF_GPU_STREAM_GROUP_COUNT=4 TF_NODE_LEVEL_MULTISTREAM=true" in by_hand
    assert "--models=dlrm --modes=training --setups=one_stream" in by_hand


def test_child_that_hangs_is_killed_and_fails(
    pretend: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(sleeps="one_stream")
    assert benchmark_policies.main([*SHORT, "--rounds", "1", "--timeout", "1"]) == 1
    message = "dlrm, training, one_stream: killed after 1 s; try a longer --timeout"
    assert message in capsys.readouterr().err


def test_sanitizer_reports_fail(pretend: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(reports="hand_marks")
    assert benchmark_policies.main([*SHORT, "--rounds", "1"]) == 1
    assert "hand_marks: the stream sanitizer has 3 reports" in capsys.readouterr().err


def test_figures_are_the_last_line_of_json_that_has_them() -> None:
    parse = benchmark_policies.parse_figures
    figures = '{"step_ms": 2}'
    assert parse(f'{{"step_ms": 1}}\nnoise\n{figures}\n{{"else": 1}}\n{{broken\n') == {"step_ms": 2}
    assert parse("noise\n") is None
    assert parse("") is None


def test_environment_of_a_run_is_that_of_its_setup() -> None:
    given = {
        "TF_GPU_STREAM_GROUP_COUNT": "9",
        "TF_STREAM_FROM_FILE": "groups.txt",
        "TF_MULTI_STREAM_POLICY": "cost",
        "TF_GPU_STREAM_MERGE": "true",
        "TF_SEGMENT_OWN_CONST": "true",
        "TF_OTHER": "kept",
    }

    def environment(name: str) -> dict[str, str]:
        made = environment_of(SETUPS[name], 4, given)
        determinism = {"TF_CUDNN_USE_AUTOTUNE", "TF_DISABLE_SCATTER_OP_DETERMINISM"}
        assert determinism < made.keys()
        return {k: v for k, v in made.items() if k not in {*determinism, "TF_CPP_MIN_LOG_LEVEL"}}

    assert environment("stock") == {"TF_OTHER": "kept"}
    one = {
        "TF_GPU_STREAM_GROUP_COUNT": "4",
        "TF_NODE_LEVEL_MULTISTREAM": "true",
        "TF_GPU_STREAM_MERGE": "true",
        "TF_SEGMENT_OWN_CONST": "true",
        "TF_OTHER": "kept",
    }
    assert environment("one_stream") == environment("hand_marks") == one
    for policy in ("embedding", "full_graph", "cost"):
        assert environment(policy) == {**one, "TF_MULTI_STREAM_POLICY": policy}
    assert [name for name, setup in SETUPS.items() if setup.marks] == ["hand_marks"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "dlrm,resnet"], "'resnet' in 'dlrm,resnet' is not one of inception, nasnet,"),
        (["--modes", "serve"], "'serve' in 'serve' is not one of training, inference;"),
        (["--setups", ""], "is not one of stock, one_stream, hand_marks, embedding, full_graph,"),
        (["--groups", "1"], "argument --groups: '1' is not a whole number from 2 to 64"),
        (["--steps", "0"], "argument --steps: '0' is not a whole number from 1"),
        (["--lookups", "x"], "argument --lookups: 'x' is not a whole number"),
        (["--rows", "31"], "--rows 31 is less than a batch of 32, whose ids all differ"),
        (["--json", "/no/folder/f"], "--json /no/folder/f: there is no such folder"),
        (["--here"], "--here measures one alone: give one name to --models"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        benchmark_policies.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the arguments, and four groups of an emulated GPU; it must succeed."""
    done: subprocess.CompletedProcess[str] = run_python(command, {**NODE_LEVEL, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done


MEASURE = """
import json, sys
import benchmark_policies, branchy_models
import numpy as np, tensorflow as tf
options = benchmark_policies.parse_arguments(sys.argv[1:])
figures = {model: {
    f"{mode}, marks {marks}": branchy_models.measure(model, mode, options, marks)
    for mode in options.modes for marks in (False, True)
} for model in branchy_models.MODELS}

def pretended(*arguments):
    module = tf.Module()
    module.weights = tf.Variable([2.0])
    losses = iter(np.arange(100, dtype=np.float32))
    return lambda: next(losses), module

branchy_models.make = pretended
figures["pretended"] = branchy_models.measure("", "training", options, False)
print(json.dumps(figures))
"""


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    """Figures of every model, and of one that only counts its steps, from one process."""
    done = run(["-c", MEASURE, *TINY])
    figures: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    assert tuple(figures) == (*benchmark_policies.MODELS, "pretended")
    return figures


@pytest.mark.parametrize("model", benchmark_policies.MODELS)
def test_model_learns(measured: dict[str, dict[str, Any]], model: str) -> None:
    figures = measured[model]["training, marks False"]
    assert 0 < figures["last"] < 0.9 * figures["first"]
    assert 0 < figures["lowest_ms"] <= figures["step_ms"] <= figures["highest_ms"]


@pytest.mark.parametrize("mode", benchmark_policies.MODES)
@pytest.mark.parametrize("model", benchmark_policies.MODELS)
def test_marks_use_several_groups_with_the_same_bits(
    measured: dict[str, dict[str, Any]], model: str, mode: str
) -> None:
    plain, marked = (measured[model][f"{mode}, marks {marks}"] for marks in (False, True))
    assert plain["sha256"] == marked["sha256"]
    assert plain["groups"] == [0]
    assert plain["waits"] == 0
    assert marked["groups"] == [0, 1, 2, 3]
    assert marked["waits"] > 0
    assert plain["sanitizer_reports"] == marked["sanitizer_reports"] == 0


def test_inference_takes_turns_with_several_batches(measured: dict[str, dict[str, Any]]) -> None:
    for model in benchmark_policies.MODELS:
        figures = measured[model]["inference, marks False"]
        assert figures["first"] != figures["last"]


def test_results_of_models_and_modes_differ(measured: dict[str, dict[str, Any]]) -> None:
    digests = {
        figures["sha256"]
        for model in benchmark_policies.MODELS
        for figures in measured[model].values()
    }
    assert len(digests) == len(benchmark_policies.MODELS) * len(benchmark_policies.MODES)


def test_bits_are_those_of_all_results_and_of_the_weights(
    measured: dict[str, dict[str, Any]],
) -> None:
    figures = measured["pretended"]
    everything = [*range(30), 2]  # 2 steps of warm-up, 28 measured ones
    data = np.array(everything, np.float32).tobytes()
    assert figures["sha256"] == hashlib.sha256(data).hexdigest()
    assert (figures["first"], figures["last"]) == (0, 29)


def test_whole_program_runs_on_an_emulated_gpu() -> None:
    done = run(
        [
            *("benchmark_policies.py", "--models", "dlrm", "--modes", "inference"),
            *("--setups", "one_stream,full_graph", "--rounds", "1", *TINY),
        ],
        TF_MULTI_STREAM_SANITIZER="off",
    )
    rows = _rows(done.stdout)[2:]
    assert [row[:3] for row in rows] == [
        ["dlrm", "inference", "one_stream"],
        ["dlrm", "inference", "full_graph"],
    ]
    assert all(float(row[3]) > 0 and row[7] == "yes" for row in rows)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
