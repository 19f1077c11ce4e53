# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.cuda.trace: the content of its files, and its errors."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from multistream.testing import kit

# A trace's files, read as a program would.
READ = (
    f"""
ON_GPU = {kit.ON_GPU}  # where kernels have CUDA's names, and run after they were launched
"""
    + """
import gzip, itertools, json, pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())

def chrome(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    made = json.loads(text)
    events = made["traceEvents"]
    rows = [e for e in events if e["name"] == "thread_name"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in rows}
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    spans = [e for e in events if e["ph"] == "X"]
    for e in spans:
        e["row"] = threads[e["pid"], e["tid"]]
        e["end"] = e["ts"] + e["dur"]
        check(e["pid"] in processes and e["ts"] >= 0 and e["dur"] >= 0, "an event is valid")
    for row in set(threads.values()):
        busy = 0
        for e in sorted((e for e in spans if e["row"] == row and e["cat"] != "wait"),
                        key=lambda e: (e["ts"], e["end"])):
            check(e["ts"] >= busy - 0.0005, f"{row} does one thing at a time")
            busy = e["end"]
    return spans

def of(kind, spans):
    return [e for e in spans if e["cat"] == kind]

def ops(kernels):
    "Types of the ops that launched them; on a GPU an op may launch several."
    types = [e["args"].get("op", "").rpartition(":")[2] for e in kernels]
    return [op for op, _ in itertools.groupby(types)] if ON_GPU else types
"""
)

MODEL = """
with tf.device(GPU):
    w = tf.Variable(np.random.RandomState(0).randn(64, 64).astype("f"))

@tf.function(autograph=False)
def model(x):
    with tf.device(GPU):
        return tf.tanh(tf.tanh(x @ w) @ w)
"""

# With TF_NODE_LEVEL_MULTISTREAM, four branches, whose groups follow their scopes.
BRANCHES = """
with tf.device(GPU):
    w = [tf.Variable(np.random.RandomState(i).randn(64, 64).astype("f") / 8) for i in range(4)]

@tf.function(autograph=False)
def model(x):
    with tf.device(GPU):
        ys = []
        for i in range(4):
            with tf.cuda.stream_scope(tf.cuda.get_stream(i)):
                ys.append(tf.tanh(tf.tanh(x) @ w[i], name=f"branch{i}"))
        return tf.add_n(ys)
"""


def run(*code: str, capture: str = "", **variables: str) -> None:
    kit.run_captured(READ, *code, groups=4, capture=capture, **variables)


def test_steps_of_a_graph_are_on_their_groups() -> None:
    """At graph level: each step's kernels are on one group, within the step, in order."""
    run("""
with tf.device(GPU):
    w = tf.Variable(tf.ones([64, 64]))

@tf.function(autograph=False)
def model(x):
    with tf.device(GPU):
        return tf.nn.relu(tf.tanh(x @ w, name="t") + 1.0, name="r")

x = tf.ones([8, 64])
before = model(x).numpy()
path = folder / "a.json"
with tf.cuda.trace(path):
    for i in range(4):
        with tf.cuda.stream_group(i):
            check((model(x).numpy() == before).all(), "results are unchanged")
spans = chrome(path)
steps = of("step", spans)
check(sorted(e["args"]["group"] for e in steps) == [0, 1, 2, 3], "a step of each group")
for i in range(4):
    kernels = [e for e in of("kernel", spans) if e["row"] == f"group {i}"]
    check(ops(kernels) == ["MatMul", "Tanh", "AddV2", "Relu"], "kernels")
    [step] = [e for e in steps if e["args"]["group"] == i]
    check(all(step["ts"] <= e["ts"] and e["end"] <= step["end"] for e in kernels), "in the step")
check(all(e["row"].startswith(("steps", "group ", "holds")) for e in spans), "rows")
""")


def test_waits_and_holds_are_between_groups() -> None:
    run(
        BRANCHES,
        """
x = tf.ones([8, 64])
before = model(x).numpy()
path = folder / "a.json.gz"
with tf.cuda.trace(path):
    check((model(x).numpy() == before).all(), "results are unchanged")
spans = chrome(path)
for i in range(4):
    check([e for e in of("kernel", spans) if e["row"] == f"group {i}"
           and f"branch{i}" in (e["args"].get("op", "") if ON_GPU else e["name"])],
          f"group {i} runs its branch")
waits = of("wait", spans)
for i in (1, 2, 3):
    check([e for e in waits if e["row"] == f"group {i}" and e["name"] == "wait for group 0"],
          f"group {i} waits for the leader")
    check([e for e in waits if e["row"] == "group 0" and e["name"] == f"wait for group {i}"],
          f"the leader waits for group {i}")
held = [e for e in of("hold", spans) if e["name"] == "group 0 holds memory of group 3"]
check([e["args"]["bytes"] for e in held] == [8 * 64 * 4], "the sum holds a branch's result")
check(all(e["row"].startswith("holds") and e["dur"] > 0 for e in of("hold", spans)), "holds")
""",
        TF_NODE_LEVEL_MULTISTREAM="true",
    )


def test_captured_steps_are_replays() -> None:
    """The trace has as many replays as tf.cuda.stream_stats counts, each with its kernels."""
    run(
        MODEL,
        """
x = tf.ones([8, 64])
with tf.cuda.stream_group(1):
    for _ in range(4):
        model(x)
    path = folder / "a.json"
    before = replayed()
    with tf.cuda.trace(path):
        for _ in range(3):
            model(x)
spans = chrome(path)
replays = of("replay", spans)
check(replayed() - before == 3 == len(replays), "each replay is there")
kernels = [e for e in of("kernel", spans) if e["row"] == "group 1"]
check(sum(replay["args"]["kernels"] for replay in replays) == len(kernels) >= 12, "their kernels")
for replay in replays:
    begin, end = replay["ts"], replay["end"]
    inside = [e for e in kernels if begin <= e["ts"] and e["end"] <= end]
    check(replay["row"] == "group 1 replays", "its row")
    check(ON_GPU or len(inside) == 4, "its kernels")
check([e for e in of("copy", spans) if e["name"] == "GPU to GPU"
       and e["args"]["bytes"] == 8 * 64 * 4], "its argument is copied in")
check(len(of("step", spans)) == 3, "they are steps")
""",
        capture="auto",
    )


def test_a_trace_of_many_threads_changes_no_result() -> None:
    run(
        MODEL,
        """
inputs = [tf.constant(x) for x in batches()]
expected = [model(x).numpy() for x in inputs]
started = lambda: sum(s.steps_started for s in tf.cuda.stream_stats())
path = folder / "a.json"
begun = started()

def client(i):
    for _ in range(STEPS // 4):
        check((model(inputs[i]).numpy() == expected[i]).all(), "results are unchanged")

with tf.cuda.trace(path):
    run_threads([lambda i=i: client(i) for i in range(8)])
spans = chrome(path)
check(len(of("step", spans)) == started() - begun == 8 * (STEPS // 4), "each step")
kernels = [e for e in of("kernel", spans) if e["args"].get("op", "").endswith("Tanh")]
check(len(kernels) == 2 * len(of("step", spans)), "each kernel")

# One that ends while they run, and others after it.
def trace_often():
    for i in range(5):
        with tf.cuda.trace(folder / f"{i}.json"):
            model(inputs[0])
        check(chrome(folder / f"{i}.json"), "there is something")

run_threads([lambda i=i: client(i) for i in range(7)] + [trace_often])
""",
        capture="off",
    )  # a replay is one event


def test_what_a_trace_has_and_when_it_is_refused() -> None:
    run(
        MODEL,
        """
def steps(name):
    return len(of("step", chrome(folder / name)))

x = tf.ones([8, 64])
model(x)
with tf.cuda.trace(folder / "a.json"):
    pass
check(steps("a.json") == 0, "no step from before it")
model(x)
try:
    with tf.cuda.trace(folder / "b.json"):
        model(x)
        raise KeyError("of the program")
except KeyError:
    check(steps("b.json") == 1, "no step from between; a program that fails leaves its trace")

with tf.cuda.trace(folder / "c.json", most_events=5):
    for _ in range(10):
        model(x)
    refused = tf.cuda.trace(folder / "d.json")
    fails(RuntimeError, refused.__enter__, "a trace is on already", "d.json")
check(not (folder / "d.json").exists(), "one at a time")
of_runtime = [e for e in chrome(folder / "c.json")
              if not ON_GPU or e["cat"] not in ("kernel", "copy")]
check(len(of_runtime) == 5, "its memory is bounded")
dropped = json.loads((folder / "c.json").read_text())["otherData"]["dropped_events"]
check(dropped > 10, "the other events count")
if not ON_GPU:
    refused = tf.cuda.trace(folder / "c.json", logdir="logs")
    fails(ValueError, refused.__enter__, "logdir='logs'", "emulated")
""",
    )


def test_without_groups_the_error_names_the_variable(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="no stream groups.*TF_GPU_STREAM_GROUP_COUNT"),
        tf.cuda.trace(tmp_path / "a.json"),
    ):
        pass


@pytest.mark.parametrize(
    ("path", "most_events", "error", "message"),
    [
        ("a.txt", 9, ValueError, r"trace\('a.txt'\): a trace's name ends in .json or .json.gz"),
        ("none/a.json", 9, ValueError, "there is no folder 'none'"),
        (7, 9, TypeError, r"trace\(7\): not a path"),
        ("a.json", 0, ValueError, "most_events=0 is not valid: at least 1"),
    ],
)
def test_bad_arguments_are_errors(
    path: Any, most_events: int, error: type[Exception], message: str, four_groups: None
) -> None:
    with pytest.raises(error, match=message), tf.cuda.trace(path, most_events=most_events):
        pass
