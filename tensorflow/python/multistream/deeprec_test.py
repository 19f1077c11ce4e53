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
"""Programs written for DeepRec run: tf.stream in a v1 graph, streams asked for in a ConfigProto.

A test names a function of this file, a job, which runs in a process of its own, with one emulated
GPU and no variable that makes stream groups, unless the test sets one.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from google.protobuf.internal import api_implementation
from tensorflow.core.protobuf import rewriter_config_pb2

from multistream import node_level_test as base

HERE = Path(__file__).resolve()
ON, OFF = rewriter_config_pb2.RewriterConfig.ON, rewriter_config_pb2.RewriterConfig.OFF
POLICIES = (
    "NO_PARTITION",
    "USER_DEFINED_PARTITION",
    "EMBEDDING_GRAPH_PARTITION",
    "FULL_GRAPH_PARTITION",
    "COST_PARTITION",
)
TUNED_STEPS = 100  # more than it takes to choose a plan


def run(job: Callable[..., None], *arguments: object, **environment: str) -> str:
    """Runs a function of this file, which must succeed; returns what it wrote to stderr."""
    unset = dict.fromkeys(("TF_GPU_STREAM_GROUP_COUNT", "TF_NODE_LEVEL_MULTISTREAM"))
    done = base.run_job(
        job,
        *arguments,
        first="jobs.tf.disable_v2_behavior()",
        **{**unset, "TF_CPP_MIN_LOG_LEVEL": "1", **environment},
    )
    return str(done.stderr)


def config(streams: int | None = 2, policy: str | None = None, use: int = ON) -> Any:
    """A ConfigProto that asks for streams."""
    made = tf.ConfigProto()
    rewrite = made.graph_options.rewrite_options
    rewrite.use_multi_stream = use
    if streams is not None:
        rewrite.multi_stream_opts.multi_stream_num = streams
    if policy is not None:
        value = rewriter_config_pb2.MultiStreamPartitionPolicy.Value(policy)
        rewrite.multi_stream_opts.partition_policy = value
    return made


def waits() -> list[int]:
    """How often each group has waited for another one."""
    return [group.waits for group in tf.cuda.stream_stats()]


def stream(number: int, scoped: bool) -> Any:
    return tf.stream(number) if scoped else contextlib.nullcontext()


# A linear model of two inputs, each with a branch.

WX, WY, B = 1.75, -0.5, 3.0
Points = dict[str, np.ndarray]


def points(count: int = 40) -> Points:
    """Points of the plane that the model is to find."""
    x, y = np.random.RandomState(5).uniform(-2, 2, [2, count, 1]).astype(np.float32)
    return {"x": x, "y": y, "z": np.float32(WX) * x + np.float32(WY) * y + np.float32(B)}


class Plane:
    """z = wx * x + wy * y + b, in a graph of its own.

    Args:
      first: number of the stream of x; that of y is the next one.
      scoped: whether to build on streams at all.
    """

    def __init__(self, first: int = 0, scoped: bool = True) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(7)
            self.z = tf.placeholder(tf.float32, [None, 1], "z")
            with stream(first, scoped):
                self.x = tf.placeholder(tf.float32, [None, 1], "x")
                self.wx = tf.Variable(tf.random_normal([1, 1]), name="wx")
                self.b = tf.Variable(tf.zeros([1]), name="b")
                left = tf.add(tf.matmul(self.x, self.wx), self.b, name="left")
            with stream(first + 1, scoped):
                self.y = tf.placeholder(tf.float32, [None, 1], "y")
                self.wy = tf.Variable(tf.random_normal([1, 1]), name="wy")
                right = tf.matmul(self.y, self.wy, name="right")
            self.loss = tf.reduce_mean(tf.square(left + right - self.z), name="loss")
            self.train = tf.train.GradientDescentOptimizer(0.2).minimize(self.loss)
            self.start = tf.global_variables_initializer()

    def trained(self, session_config: Any, steps: int = 60) -> list[Any]:
        """Losses of the steps and the weights after them, of a session of its own."""
        given = points()
        feeds = {self.x: given["x"], self.y: given["y"], self.z: given["z"]}
        with tf.Session(graph=self.graph, config=session_config) as session:
            session.run(self.start)
            losses = [session.run([self.loss, self.train], feeds)[0] for _ in range(steps)]
            return [*losses, *session.run([self.wx, self.wy, self.b])]


def plane_is_found(streams_used: int) -> None:
    """Training reaches the weights that made the points, on that many groups."""
    *losses, wx, wy, b = Plane().trained(config(), steps=150)
    assert losses[-1] < 1e-10 < losses[0]
    np.testing.assert_allclose([wx.item(), wy.item(), b.item()], [WX, WY, B], atol=1e-4)
    assert tf.cuda.stream_group_count() == max(1, streams_used)
    assert len(waits()) == streams_used
    assert all(count > 0 for count in waits()), waits()


def plane_by_python_messages() -> None:
    assert api_implementation.Type() == "python"
    plane_is_found(2)
    read = type(config()).FromString(config(3, "COST_PARTITION").SerializeToString())
    assert read == config(3, "COST_PARTITION")


def test_message_fields_need_no_compiled_protocol_buffers() -> None:
    run(plane_by_python_messages, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


def test_without_a_gpu_the_program_runs_on_the_cpu_and_is_warned() -> None:
    stderr = run(plane_is_found, 0, TF_MULTI_STREAM_EMULATED_GPUS="", TF_MULTI_STREAM_SANITIZER="")
    assert stderr.count("a session asks for 2 streams of a GPU, and there is no GPU") == 1


def same_bits() -> None:
    """With streams, without scopes, and without streams; by any form of the ConfigProto."""
    plane_is_found(2)
    scoped, unscoped = Plane(), Plane(scoped=False)
    before = waits()
    expected = unscoped.trained(config())
    assert len({float(loss) for loss in expected[:20]}) == 20
    assert waits() == before
    text = """
        graph_options { rewrite_options { use_multi_stream: ON
          multi_stream_opts { multi_stream_num: 2 partition_policy: USER_DEFINED_PARTITION } } }
    """
    forms = {
        "fields": config(),
        "text": text_format.Parse(text, tf.ConfigProto()),
        "printed": text_format.Parse(text_format.MessageToString(config()), tf.ConfigProto()),
        "serialized": tf.ConfigProto.FromString(config().SerializeToString()),
    }
    for name, form in forms.items():
        before = waits()
        assert base.same(scoped.trained(form), expected), name
        assert all(a > b for a, b in zip(waits(), before, strict=True)), name
    # One stream, though the process has two, in the same graph with its scopes.
    before = waits()
    for name, form in {
        "no config": None,
        "empty": tf.ConfigProto(),
        "off": config(use=OFF),
    }.items():
        assert base.same(scoped.trained(form), expected), name
        assert waits() == before, name
    assert base.same(scoped.trained(config()), expected)
    assert waits()[1] > before[1]


def test_training_finds_the_plane_with_the_bits_of_one_stream() -> None:
    """The ConfigProto is all that asks for streams; a session without, or with OFF, has one."""
    assert "there is no GPU" not in run(same_bits)


def nested_and_colocated() -> None:
    """The innermost scope counts, and colocation with an op takes its stream."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.stream(0):
            a = tf.placeholder(tf.float32, [None, 3], "a")
            with tf.stream(1):
                b = tf.sin(a, name="b")
                with tf.stream(2):
                    c = tf.exp(b, name="c")
                d = tf.tanh(b, name="d")
            e = tf.cos(a, name="e")
        with tf.colocate_with(b):
            f = tf.multiply(e, tf.constant([0.5, 2.0, 3.0], name="half"), name="f")
        with tf.stream(0), tf.colocate_with(c.op):
            g = tf.square(d, name="g")
        out = tf.add_n([a, b, c, d, e, f, g], name="out")
        (gradient,) = tf.gradients(out, a)
    groups = {row.node: row.group for row in tf.cuda.stream_groups_of(graph)}
    expected = {"a": 0, "b": 1, "c": 2, "d": 1, "e": 0, "f": 1, "half": 1, "g": 2, "out": None}
    assert {name: groups[name] for name in expected} == expected
    x = np.random.RandomState(1).randn(4, 3).astype(np.float32)
    results = []
    for form in (config(3), config(1, use=OFF)):
        with tf.Session(graph=graph, config=form) as session:
            results.append(session.run([out, c, f, g, gradient], {a: x}))
        if form.graph_options.rewrite_options.use_multi_stream == ON:
            after = waits()
            assert all(count > 0 for count in after), after
    assert waits() == after
    assert base.same(*results)
    np.testing.assert_allclose(results[0][1], np.exp(np.sin(x)), rtol=1e-5)
    np.testing.assert_allclose(results[0][2], np.cos(x) * [0.5, 2.0, 3.0], rtol=1e-5)


def test_scopes_nest_and_colocation_takes_the_stream() -> None:
    run(nested_and_colocated)


# Policies.


def clicks(scoped: bool) -> Callable[[Any], list[Any]]:
    """Training of four embedding tables and two dense branches; it takes a ConfigProto."""
    random = np.random.RandomState(3)
    ids = random.randint(0, 50, [4, 16])
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(1)
        fed = tf.placeholder(tf.int64, [4, 16])
        found = []
        for i in range(4):
            with stream(i % 3, scoped):
                table = tf.get_variable(f"table{i}", [50, 8])
                found.append(tf.nn.embedding_lookup(table, fed[i]))
        x = tf.concat(found, 1)
        ends = []
        for i in range(2):
            with stream(i + 1, scoped):
                y = x
                for layer in range(3):
                    w = tf.get_variable(f"w{i}{layer}", [y.shape[1], 12])
                    y = tf.tanh(tf.matmul(y, w))
                ends.append(tf.reduce_sum(y, 1))
        loss = tf.reduce_mean(tf.square(ends[0] * ends[1] - 1.0))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        start = tf.global_variables_initializer()
        variables = tf.trainable_variables()

    def trained(form: Any) -> list[Any]:
        with tf.Session(graph=graph, config=form) as session:
            session.run(start)
            step = session.make_callable([loss, train], [fed])
            losses = [step((ids + i) % 50)[0] for i in range(TUNED_STEPS)]
            return [*losses, *session.run(variables)]

    return trained


def policies() -> None:
    """Each policy, of a model with scopes and of one without."""
    unmarked, marked = clicks(False), clicks(True)
    expected = unmarked(config(3))
    assert expected[TUNED_STEPS - 1] < 0.5 * expected[0]
    for policy in POLICIES:
        before = waits()
        assert base.same(unmarked(config(3, policy)), expected), policy
        grown = [a - b for a, b in zip(waits(), before, strict=True)]
        if policy in POLICIES[:2]:
            assert grown == [0, 0, 0], (policy, grown)
        elif policy != "COST_PARTITION":  # which may say at once that nothing is gained
            assert all(count > 0 for count in grown), (policy, grown)
        before = waits()
        assert base.same(marked(config(3, policy)), expected), policy
        assert all(a > b + TUNED_STEPS for a, b in zip(waits(), before, strict=True)), policy


def test_every_policy_gives_the_same_bits() -> None:
    """Those that split use the groups, those that do not leave all on one."""
    run(policies)


# The environment and errors.


def line_of(text: str) -> int:
    """The number of the first line of this file that begins so."""
    lines = HERE.read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.lstrip().startswith(text))


@contextlib.contextmanager
def fails(kind: type[Exception], *texts: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    for text in texts:
        assert text in str(caught.value), (text, str(caught.value))


def config_beats_environment() -> None:
    """Four groups for steps in the environment, two streams for nodes in the ConfigProto."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3])
        with tf.stream(1):
            near = tf.sin(x, name="near")
        with tf.stream(3):
            far = tf.tan(x, name="far")  # nobody has this stream

    def steps(form: Any, fetch: Any) -> list[int]:
        """How many steps each group has been given while the graph ran eight times."""
        before = [group.steps_started for group in tf.cuda.stream_stats()]
        with tf.Session(graph=graph, config=form) as session:
            for _ in range(8):
                session.run(fetch, {x: [1.0, 2.0, 3.0]})
        after = [group.steps_started for group in tf.cuda.stream_stats()]
        return [a - b for a, b in zip(after, before or [0] * len(after), strict=True)]

    assert all(count > 0 for count in steps(None, near))  # the environment's: a step a group
    before = waits()
    assert steps(config(4, use=OFF), far)[1:] == [0, 0, 0]
    assert waits() == before
    assert steps(config(2), near) == [8, 0, 0, 0]
    assert waits()[1] > before[1]
    assert waits()[2:] == before[2:]
    where = f'{HERE.name}", line {line_of("far = tf.tan")}'
    with fails(tf.errors.InvalidArgumentError, "far}} (Tan)", "stream group 3", "has 2", where):
        steps(config(2), far)
    steps(config(4), far)
    assert waits()[3] > before[3]


def test_a_config_beats_the_environment() -> None:
    """With fewer streams, the error names the op in none of them and where it was built."""
    run(config_beats_environment, TF_GPU_STREAM_GROUP_COUNT="4")


def wrong_numbers() -> None:
    """Numbers of streams that are not allowed, or not there."""
    plane = Plane()
    field = "multi_stream_opts.multi_stream_num"
    for number in (0, 65, -1):
        with fails(tf.errors.InvalidArgumentError, f"{field}={number} is not", "from 1 to 64"):
            plane.trained(config(number))
    assert tf.cuda.stream_stats() == []  # nothing has been made
    three = plane.trained(config(3), 5)
    for number in (4, 64):
        with fails(
            tf.errors.FailedPreconditionError, f"{field} is {number},", "has 3 stream groups"
        ):
            plane.trained(config(number))
    assert base.same(plane.trained(config(2), 5), three)
    rewrite = text_format.Parse(
        "use_multi_stream: 7", tf.ConfigProto().graph_options.rewrite_options
    )
    wrong = tf.ConfigProto()
    wrong.graph_options.rewrite_options.CopyFrom(rewrite)
    with fails(tf.errors.InvalidArgumentError, "use_multi_stream=7 is not", "ON or OFF"):
        plane.trained(wrong)
    with fails(text_format.ParseError, "MultiStreamOptions", '"streams"'):
        text_format.Parse("multi_stream_opts { streams: 2 }", rewrite)


def test_wrong_numbers_of_streams_are_named() -> None:
    run(wrong_numbers)


def asks_too_late() -> None:
    """A session has made the GPU's one group before."""
    plane = Plane()
    expected = plane.trained(None, 5)
    with fails(
        tf.errors.FailedPreconditionError,
        "multi_stream_num is 2, and GPU 0 has 1 stream group in this process",
        "TF_GPU_STREAM_GROUP_COUNT=2",
    ):
        plane.trained(config())
    assert base.same(plane.trained(config(1), 5), expected)
    assert base.same(plane.trained(None, 5), expected)


def test_streams_asked_for_after_the_gpu_is_made_are_an_error() -> None:
    """It says what to do, and sessions that ask for less still run."""
    run(asks_too_late)


def asks_again(path: str) -> None:
    """Sessions that cannot be made, and then sessions that can."""
    plane = Plane(scoped=False)
    with fails(tf.errors.InvalidArgumentError, 'TF_GPU_STREAM_GROUP_PRIORITIES="0,0"', "has 3"):
        Path(path).write_text("2: left\n")
        plane.trained(config(3))
    Path(path).unlink()
    with fails(tf.errors.NotFoundError, path):
        plane.trained(config(2))
    for group in ("2", "one"):
        Path(path).write_text(f"{group}: left\n")
        with fails(tf.errors.InvalidArgumentError, f'{path}:1: group "{group}"'):
            plane.trained(config(2))
    assert tf.cuda.stream_stats() == []
    assert tf.cuda.stream_group_count() == 1
    Path(path).write_text("1: left\n")
    losses = plane.trained(config(2))
    assert len(waits()) == 2 and waits()[0] > 0
    Path(path).unlink()  # it has been read
    assert base.same(plane.trained(config(1)), losses)
    assert base.same(plane.trained(config(2)), losses)


def test_a_session_that_cannot_be_made_asks_for_nothing(tmp_path: Path) -> None:
    """Neither its number of streams nor what was wrong in a file counts for the next one."""
    run(
        asks_again,
        str(tmp_path / "groups.txt"),
        TF_GPU_STREAM_GROUP_PRIORITIES="0,0",
        TF_STREAM_FROM_FILE=str(tmp_path / "groups.txt"),
    )


def pinned_call() -> None:
    """A thread on one group, and a session whose nodes have groups."""
    plane = Plane()
    expected = plane.trained(config(2))
    with tf.cuda.stream_group(1):
        with fails(tf.errors.InvalidArgumentError, "stream group 1", "nodes have groups"):
            plane.trained(config(2))
        assert base.same(plane.trained(None), expected)
    assert base.same(plane.trained(config(2)), expected)


def test_calls_pinned_to_a_group_are_an_error_where_nodes_have_groups() -> None:
    """Other sessions run there."""
    run(pinned_call, TF_GPU_STREAM_GROUP_COUNT="2")


def variables_by_name() -> None:
    """Variables of get_variable and what is colocated with them."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [2, 3])
        with tf.stream(1):
            w = tf.get_variable("w", [3, 4])
            y = tf.matmul(x, w)
        loss = tf.reduce_sum(tf.square(y))
        train = tf.train.AdamOptimizer().minimize(loss)
        with tf.device("/CPU:0"):
            on_cpu = tf.get_variable("on_cpu", [2])
        read = on_cpu + 1
        words = tf.get_variable("words", initializer=tf.constant(["a", "b"]))  # no GPU has these
        start = tf.global_variables_initializer()
    options = tf.RunOptions(output_partition_graphs=True)
    found = tf.RunMetadata()
    with tf.Session(graph=graph, config=config(2)) as session:
        session.run(start)
        session.run([loss, train, read, words], {x: np.ones([2, 3])}, options, found)
    devices = {
        node.name: node.device
        for part in found.partition_graphs
        for node in part.node
        if node.device
    }
    for name in ("w", "w/Adam", "MatMul", "Adam/update_w/ApplyAdam"):
        assert "GPU:0" in devices[name], (name, devices)
    for name in ("on_cpu", "words"):
        assert "CPU:0" in devices[name], (name, devices)


def test_variables_of_get_variable_are_on_the_gpu() -> None:
    """As on a machine with a GPU, with all that is colocated with them."""
    run(variables_by_name)


def two_threads() -> None:
    """Sessions of two and three streams, and one of none, train at the same time."""
    planes = [Plane(0), Plane(1), Plane(0)]
    forms = [config(2), config(3), None]
    with tf.Session(config=config(3)):
        pass  # who asks for most is first
    expected = Plane(scoped=False).trained(config(1))
    results: list[Any] = [None] * 3

    def train(i: int) -> None:
        results[i] = [planes[i].trained(forms[i]) for _ in range(3)]

    threads = [threading.Thread(target=train, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in results:
        assert found is not None
        assert all(base.same(one, expected) for one in found)
    assert all(count > 0 for count in waits())
    before = waits()
    planes[0].trained(config(2))  # not one of the other's third
    assert waits()[2] == before[2] and waits()[1] > before[1]
    with fails(tf.errors.InvalidArgumentError, "stream group 2", "has 2"):
        planes[1].trained(config(2))


def test_sessions_of_different_configs_train_in_threads() -> None:
    run(two_threads)


def file_and_config() -> None:
    """The file moves a branch that the program has on stream 0, of a session with streams only."""
    plane = Plane(scoped=False)
    expected = plane.trained(config(3))
    used = waits()
    assert used[0] > 0 and used[1] > 0 and used[2] == 0
    assert base.same(plane.trained(None), expected)
    assert waits() == used
    with plane.graph.as_default():
        tf.negative(plane.wx.initialized_value(), name="far")
    for form in (config(2), config(3)):
        with tf.Session(graph=plane.graph, config=form) as session:
            session.run(plane.start)
            if form.graph_options.rewrite_options.multi_stream_opts.multi_stream_num == 2:
                with fails(tf.errors.InvalidArgumentError, "far}} (Neg)", "stream group 2"):
                    session.run("far:0")
            else:
                session.run("far:0")
    assert waits()[2] > 0


def test_stream_file_counts_for_sessions_with_streams(tmp_path: Path) -> None:
    """A session without has one stream; a group that a session has not is an error."""
    path = tmp_path / "groups.txt"
    path.write_text("1: left, MatMul  # of x\n2: far\n")
    run(file_and_config, TF_STREAM_FROM_FILE=str(path))
