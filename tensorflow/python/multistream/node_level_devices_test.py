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
"""Branches on the stream groups of several GPUs, and of replicas, give what one stream gives.

As in node_level_test.py, a test names a job, which runs in a process of its own. What a job builds
without scopes runs on group 0 of each GPU and is the reference for the same thing with scopes.
"""

import concurrent.futures
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from multistream import node_level_test as base

tf1 = tf.compat.v1
on, same = base.on, base.same


def run(job: Callable[..., None], *arguments: object, **environment: str) -> None:
    """Runs a function of this file, which must succeed, in a process with two GPUs."""
    base.run_job(job, *arguments, **{"TF_MULTI_STREAM_EMULATED_GPUS": "2", **environment})


def run_all(tests: Sequence[Callable[[], object]]) -> None:
    """Runs processes side by side."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for done in [pool.submit(test) for test in tests]:
            done.result()


def gpu(i: int) -> str:
    """The name of a GPU; numbers that are too high begin again with the first."""
    return f"/GPU:{i % len(gpus())}"


def gpus() -> range:
    return range(len(tf.config.list_physical_devices("GPU")))


def used() -> set[tuple[int, int]]:
    """GPU and number of the stream groups whose memory this process has used."""
    return {(s.gpu, s.group) for s in tf.cuda.stream_stats() if s.peak_bytes_in_use > 0}


def leaders() -> set[tuple[int, int]]:
    """GPU and number of the groups that are used without scopes."""
    return {(i, 0) for i in gpus()}


# Random programs of node_level_test.py, each instruction on a GPU of its own.


class FunctionState(base.FunctionState):
    """Variables of a tf.function, one a GPU."""

    def __init__(self) -> None:
        self.variables = []
        for k in range(base.VARIABLES):
            with tf.device(gpu(k)):
                self.variables.append(tf.Variable(base.start_of(k)))

    def use(self, op: str, k: int, value: Any) -> Any:
        with tf.device(gpu(k % base.VARIABLES)):
            return super().use(op, k, value)


class SessionState(base.SessionState):
    """Variables of a session's graph, one a GPU."""

    def __init__(self, reference: bool) -> None:
        self.variables = []
        for k in range(base.VARIABLES):
            with tf.device(gpu(k)):
                self.variables.append(
                    tf1.get_variable(
                        f"w{k}", initializer=base.start_of(k), use_resource=not reference
                    )
                )
        self.last: list[list[Any]] = [[] for _ in range(base.VARIABLES)]

    def use(self, op: str, k: int, value: Any) -> Any:
        with tf.device(gpu(k % base.VARIABLES)):
            return super().use(op, k, value)


def random_programs(first: int, last: int, groups: int) -> None:
    """The programs of these seeds, on the first groups of all GPUs."""
    build_one, scope = base.build_one, base.on

    def build_one_on_gpu(
        instruction: base.Instruction, state: Any, inputs: list[Any], scoped: bool
    ) -> Any:
        with tf.device(gpu(instruction.k + instruction.inputs[0])):
            return build_one(instruction, state, inputs, scoped)

    def scope_of_few(group: int | None, scoped: bool = True, include_grad: bool = True) -> Any:
        return scope(None if group is None else group % groups, scoped, include_grad)

    base.build_one, base.on = build_one_on_gpu, scope_of_few
    base.FunctionState, base.SessionState = FunctionState, SessionState
    base.groups_used = lambda: {group for _, group in used()}
    base.GROUPS = groups
    base.random_programs(first, last)
    assert used() == {(i, j) for i in gpus() for j in range(groups)}


def test_random_programs() -> None:
    """Programs whose instructions are on two or three GPUs give the same bits with scopes."""
    run_all(
        [
            partial(run, random_programs, 300, 308, 3, TF_GPU_STREAM_GROUP_COUNT="3"),
            partial(
                run,
                random_programs,
                308,
                316,
                2,
                TF_MULTI_STREAM_EMULATED_GPUS="3",
                TF_GPU_STREAM_GROUP_COUNT="2",
                TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION="true",
            ),
        ]
    )


# Programs whose branches name their GPU and group.


def places() -> list[tuple[int, int]]:
    """GPU and number of the groups that tf.cuda.get_stream knows, GPUs taking turns."""
    counts = [min(tf.cuda.stream_group_count(i), tf.cuda.stream_group_count()) for i in gpus()]
    return [(i, j) for j in range(max(counts)) for i, count in enumerate(counts) if j < count]


def numbers(seed: int, *shape: int) -> Any:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32) * 0.5


def either(y: Any) -> Any:
    """A branch that depends on the values.

    Its gradient has sums of two only. Where a sum of three begins depends, in a loop's gradient, on
    which buffers happen to be free, in stock TensorFlow too.
    """
    return tf.cond(
        tf.reduce_sum(y) > 0.0,
        lambda: tf.sin(y) + 0.5 * y,
        lambda: y - tf.square(y) * 0.25,
    )


def function_of_towers(scoped: bool) -> list[Any]:
    """Losses and weights of towers on every group, each of which takes what two others made."""
    all_places = places()
    weights = []
    for k, (i, _) in enumerate(all_places):
        with tf.device(gpu(i)):
            weights.append(tf.Variable(numbers(k, 6, 6)))

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            before = [x] * len(all_places)
            layer: list[Any] = []
            for depth in range(2):
                layer = []
                for k, (i, j) in enumerate(all_places):
                    with tf.device(gpu(i)), on(j, scoped):
                        taken = before[k - 1] + 0.5 * before[(k + depth) % len(before)]
                        y = tf.tanh(tf.matmul(taken, weights[k]))
                        layer.append(either(y) if k % 3 == depth else y)
                before = layer

            def body(n: Any, *values: Any) -> Any:
                found = []
                for k, (i, j) in enumerate(all_places):
                    with tf.device(gpu(i)), on(j, scoped):
                        found.append(tf.tanh(values[k] * 0.75 + values[k - 1] * values[k - 2]))
                return (n + 1, *found)

            layer = tf.while_loop(lambda n, *_: n < 3, body, [tf.constant(0), *layer])[1:]
            with tf.device(gpu(1)), on(1, scoped):
                loss = tf.reduce_mean(tf.square(tf.add_n(list(layer)) - x))
        gradients = tape.gradient(loss, weights)
        for k, (w, g, (i, _)) in enumerate(zip(weights, gradients, all_places, strict=True)):
            # Updates, too, take what other GPUs and groups have made.
            with tf.device(gpu(i)), on(1, scoped):
                w.assign_sub(0.1 * g + 0.001 * gradients[k - 1])
        return [loss, *layer]

    results = []
    for i in range(5):
        results += [x.numpy() for x in step(tf.constant(numbers(100 + i, 5, 6)))]
    return [*results, *[w.numpy() for w in weights]]


def session_of_towers(scoped: bool, old_control_flow: bool, reference: bool) -> list[Any]:
    """The same in a session, with gradients through a loop."""
    all_places = places()
    if old_control_flow:
        tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [5, 6])
            count = tf1.placeholder(tf.int32, [])
            weights: list[Any] = []
            layer: list[Any] = []
            for k, (i, j) in enumerate(all_places):
                with tf.device(gpu(i)), on(j, scoped):
                    w = tf1.get_variable(
                        f"w{k}", initializer=numbers(k, 6, 6), use_resource=not reference
                    )
                    weights.append(w)
                    y = tf.tanh(tf.matmul(x if k < 3 else layer[k - 3], w))
                    layer.append(either(y) if k % 2 else y)

            def body(n: Any, *values: Any) -> Any:
                found = []
                for k, (i, j) in enumerate(all_places):
                    with tf.device(gpu(i)), on(j, scoped):
                        y = tf.tanh(tf.matmul(values[k - 1], weights[k]))
                        found.append(either(y) if k == 1 else y)
                return (n + 1, *found)

            with tf.device(gpu(0)):
                loop = tf.while_loop(lambda n, *_: n < count, body, [tf.constant(0), *layer])
            with tf.device(gpu(1)), on(1, scoped):
                loss = tf.reduce_mean(tf.square(tf.add_n(list(loop[1:])) - x))
            train = tf1.train.GradientDescentOptimizer(0.05).minimize(loss)
            initializer = tf1.global_variables_initializer()
    finally:
        tf1.enable_control_flow_v2()
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=graph, config=config) as session:
        session.run(initializer)
        results = []
        for i in range(5):
            feeds = {x: numbers(100 + i, 5, 6), count: i % 4}
            results += session.run([loss, *layer, *loop[1:], train], feeds)[:-1]
        return [*results, *session.run(weights)]


def towers(reference: bool) -> None:
    """Each without scopes, then each with them."""
    models: dict[str, Callable[[bool], list[Any]]] = {
        "function": function_of_towers,
        "session": lambda scoped: session_of_towers(scoped, False, not reference),
        "session, v1 control flow": lambda scoped: session_of_towers(scoped, True, reference),
    }
    expected = {name: model(False) for name, model in models.items()}
    assert used() == leaders(), used()
    for name, model in models.items():
        assert same(model(True), expected[name]), name
        assert used() == set(places()), (name, used())
        assert all(np.isfinite(x).all() for x in expected[name]), name
    # What is compared depends on every weight.
    losses = expected["function"][:: 1 + len(places())][:5]
    assert len({float(loss) for loss in losses}) == 5


def test_towers_on_every_group_of_every_gpu() -> None:
    """Tensors that cross GPUs and groups, variables, gradients, branches and loops."""
    three = {"TF_MULTI_STREAM_EMULATED_GPUS": "3", "TF_GPU_STREAM_GROUP_COUNT": "4,2,3"}
    run_all(
        [
            partial(run, towers, True, TF_GPU_STREAM_GROUP_COUNT="3"),
            partial(run, towers, False, **three, TF_REDUCE_STREAM_WAIT="false"),
        ]
    )


def missing_groups() -> None:
    """Groups that the first GPU has and the second has not, in a function, a call, a session."""
    x = tf.constant([1.0, 2.0])

    @tf.function
    def inner(x: Any) -> Any:
        with tf.device("/GPU:1"):
            return tf.tanh(x, name="bad")

    @tf.function
    def direct(x: Any) -> Any:
        with tf.device("/GPU:0"), on(3):
            y = tf.sin(x)
        with tf.device("/GPU:1"), on(3):
            return tf.tanh(y, name="bad")

    @tf.function
    def called(x: Any) -> Any:
        with tf.device("/GPU:0"), on(3):
            return inner(tf.sin(x))

    @tf.function
    def other(x: Any) -> Any:
        for i, group in ((0, 3), (1, 1), (0, 1), (1, 0)):
            with tf.device(gpu(i)), on(group):
                x = tf.sin(x)
        return x

    wanted = r"Node \S*node \S*bad\S* \(Tanh\) is in stream group 3, and the GPU has 2 \("
    expected = np.sin(np.sin(np.sin(np.sin(x))))
    for function in (direct, called):
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                function(x)
            assert np.allclose(other(x), expected)

    with tf.Graph().as_default() as graph:
        p = tf1.placeholder(tf.float32, [2])
        with tf.device("/GPU:0"), on(3):
            good = tf.sin(p)
        with tf.device("/GPU:1"), on(3):
            bad = tf.tanh(good, name="bad")
    with tf1.Session(graph=graph) as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                session.run(bad, {p: x.numpy()})
            assert np.allclose(session.run(good, {p: x.numpy()}), np.sin(x))
    assert used() <= {(0, 0), (0, 1), (0, 3), (1, 0), (1, 1)}


def file_for_uneven_gpus() -> None:
    """The file names groups that the second GPU has and the first has not."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"), tf.name_scope("first"):
            x = tf.tanh(x)
        with tf.device("/GPU:1"), tf.name_scope("second"):
            return tf.sin(x)

    @tf.function
    def bad(x: Any) -> Any:
        with tf.device("/GPU:0"), tf.name_scope("second"):
            return tf.tanh(x, name="bad")

    x = tf.constant(numbers(0, 64, 64))
    assert np.allclose(function(x), np.sin(np.tanh(x)), atol=1e-6)
    assert used() == {(0, 0), (0, 1), (1, 0), (1, 3)}, used()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"second/bad.* group 3, and the"):
        bad(x)


def test_gpus_with_different_numbers_of_groups(tmp_path: Path) -> None:
    """A group that only another GPU has is an error that names the node."""
    path = tmp_path / "streams.txt"
    path.write_text("1: first/.*\n3: second/.*\n", encoding="utf-8")
    run_all(
        [
            partial(run, missing_groups, TF_GPU_STREAM_GROUP_COUNT="4,2"),
            partial(
                run,
                file_for_uneven_gpus,
                TF_GPU_STREAM_GROUP_COUNT="2,4",
                TF_STREAM_FROM_FILE=str(path),
            ),
        ]
    )


# Replicas.


def mirrored_training(strategy: Any, scoped: bool) -> list[Any]:
    """Losses and weights of replicas whose branches are in scopes."""
    with strategy.scope():
        v, w = (tf.Variable(numbers(k, 6, 6)) for k in range(2))
        optimizer = keras.optimizers.SGD(0.1, momentum=0.5)
        optimizer.build([v, w])

    def replica(x: Any) -> Any:
        context = tf.distribute.get_replica_context()
        x *= 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
        with tf.GradientTape() as tape:
            with on(1, scoped):
                a = tf.tanh(tf.matmul(x, v))
            with on(2, scoped):
                b = tf.sin(tf.matmul(x, w))
            with on(None, scoped):
                loss = tf.reduce_mean(tf.math.squared_difference(a * b, x))
        optimizer.apply_gradients(
            [(g, u) for g, u in zip(tape.gradient(loss, [v, w]), [v, w], strict=True)]
        )
        with on(2, scoped):
            return loss + tf.reduce_sum(context.all_reduce("SUM", a))

    @tf.function
    def step(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x,)), axis=None)

    data = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(numbers(2, 40, 6)).batch(8),
        tf.distribute.InputOptions(experimental_fetch_to_device=False),
    )
    return [*[step(x).numpy() for x in data], v.numpy(), w.numpy()]


def scope_around_replicas(strategy: Any) -> None:
    """Replicas are traced in other threads, where the scope of the caller does not count."""

    def replica(x: Any) -> Any:
        return tf.sin(tf.tanh(x)) * 2.0

    def groups(inside: Any) -> set[int | None]:
        @tf.function(autograph=False)
        def step(x: Any) -> Any:
            with on(2):
                results = strategy.run(inside, args=(x,))
            return strategy.reduce("SUM", results, axis=None)

        x = numbers(3, 4)
        assert np.allclose(step(tf.constant(x)), 4.0 * np.sin(np.tanh(x)), atol=1e-5)
        rows = tf.cuda.stream_groups_of(step)
        return {row.group for row in rows if row.op in ("Tanh", "Sin", "Mul")}

    assert groups(replica) <= {None, 0}
    assert groups(on(1)(replica)) == {1}
    # The call of the function is made by the thread that is in the scope.
    assert groups(tf.function(replica)) == {2}


def raw_collective(scoped: bool) -> list[Any]:
    """A collective op on each GPU, in scopes of different groups."""

    @tf.function
    def function(x: Any) -> Any:
        found = []
        for i in gpus():
            with tf.device(gpu(i)):
                with on(i + 1, scoped):
                    y = tf.tanh(x * (i + 1.0))
                    y = tf.raw_ops.CollectiveReduce(
                        input=y,
                        group_size=2,
                        group_key=50,
                        instance_key=50 + scoped,
                        merge_op="Add",
                        final_op="Id",
                        subdiv_offsets=[0],
                        communication_hint="ring",
                        timeout_seconds=60,
                    )
                with on(2 - i, scoped):
                    found.append(tf.sin(y))
        return found

    x = numbers(4, 100)
    results = [y.numpy() for _ in range(5) for y in function(tf.constant(x))]
    assert np.allclose(results, np.sin(np.tanh(x) + np.tanh(2.0 * x)), atol=1e-5)
    return results


def replicas() -> None:
    """Each strategy without scopes, then each with them."""
    names = ["/gpu:0", "/gpu:1"]
    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategies = [
        tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice()),
        tf.distribute.MirroredStrategy(names, tf.distribute.HierarchicalCopyAllReduce()),
        # By itself it takes the CPU, as emulated GPUs are no GPUs to it.
        tf.distribute.MultiWorkerMirroredStrategy._from_local_devices(names, ring),
    ]
    models: list[Callable[[bool], list[Any]]] = [
        *[partial(mirrored_training, strategy) for strategy in strategies],
        raw_collective,
    ]
    expected = [model(False) for model in models]
    assert used() == leaders(), used()
    for i, model in enumerate(models):
        assert same(model(True), expected[i]), i
        assert used() == {(i, j) for i in gpus() for j in range(3)}, used()
    first, last = expected[0][0], expected[0][4]
    assert np.isfinite(first) and first != last
    scope_around_replicas(strategies[0])


def test_replicas() -> None:
    """Strategies and collective ops with scopes in replicas train the same weights."""
    run(replicas, TF_GPU_STREAM_GROUP_COUNT="3")


# XLA, which compiles for the CPU on an emulated GPU.


def compiled_results(scoped: bool) -> list[Any]:
    """What functions with XLA give that other functions, sessions and eager code call."""
    x = tf.constant(numbers(0, 6, 6))

    def plain(x: Any) -> Any:
        return tf.matmul(tf.tanh(x), x) + tf.reduce_sum(tf.exp(x), 0)

    compiled = tf.function(plain, jit_compile=True)

    @tf.function(jit_compile=True)
    def scopes_inside(x: Any) -> Any:
        with on(1, scoped):
            a = tf.tanh(x)
        with on(2, scoped):
            return a * tf.sin(x)

    @tf.function
    def forward(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with on(1, scoped):
                a = compiled(x)
            with on(2, scoped):
                b = scopes_inside(a) + tf.sin(x)
            with tf.device("/GPU:1"), on(2, scoped):
                c = compiled(a * b)
            return tf.reduce_sum(b + c)

    @tf.function
    def backward(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with tf.GradientTape() as tape:
                tape.watch(x)
                with on(1, scoped):
                    a = compiled(x)
                with on(2, scoped):
                    b = tf.sin(scopes_inside(x))
                loss = tf.reduce_sum(a * b)
            return loss, tape.gradient(loss, x), tf.gradients(tf.reduce_sum(compiled(b)), x)

    with tf.device("/GPU:0"):
        v = tf.Variable(numbers(1, 6, 6))

    @tf.function(jit_compile=True)
    def add(x: Any) -> Any:
        v.assign_add(x)
        return v * 2.0

    @tf.function
    def change(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with on(1, scoped):
                a = add(x)
            with on(2, scoped):
                for _ in tf.range(3):
                    a = tf.sin(compiled(a)) + v
            return tf.cond(tf.reduce_sum(a) > 0.0, lambda: compiled(a), lambda: add(x) - a)

    results = [*tf.nest.flatten([[forward(x), backward(x), change(x)] for _ in range(3)]), v]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scopes_inside(forward(x) * x)
    results += [y, tape.gradient(y, x)]

    return [result.numpy() for result in results]


def compiled_in_session(scoped: bool) -> list[Any]:
    """What a session gives whose graph calls a function with XLA."""
    compiled = tf.function(lambda x: tf.matmul(tf.tanh(x), x), jit_compile=True)
    with tf.Graph().as_default() as graph, tf.device("/GPU:0"):
        x = tf1.placeholder(tf.float32, [6, 6])
        with on(1, scoped):
            a = compiled(x)
        with on(2, scoped):
            b = tf.sin(a)
        fetches = [b, tf.gradients(b, x)[0]]
    with tf1.Session(graph=graph) as session:
        return [y for i in range(3) for y in session.run(fetches, {x: numbers(i, 6, 6)})]


def compiled_functions() -> None:
    """Without scopes, then with them; what XLA cannot compile is an error that names the op."""
    models = (compiled_results, compiled_in_session)
    expected = [model(False) for model in models]
    assert used() == leaders(), used()
    assert all(same(model(True), results) for model, results in zip(models, expected, strict=True))
    assert used() >= {(0, 0), (0, 1), (0, 2), (1, 2)}, used()

    @tf.function(jit_compile=True)
    def text(x: Any) -> Any:
        return tf.strings.to_number(tf.strings.as_string(x))

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"), on(1):
            return text(tf.sin(x))

    x, wanted = tf.constant([1.0]), r"unsupported operation.*AsString"
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
            function(x)


def test_compiled_functions() -> None:
    """Functions with jit_compile=True in scopes, and scopes in them, with gradients."""
    run(compiled_functions, TF_GPU_STREAM_GROUP_COUNT="3")


# Values that are no plain tensors, and state that is not in a variable.

Results = list[Any]
CASES: dict[str, Callable[[bool], Results]] = {}


def case(build: Callable[[bool], Results]) -> Callable[[bool], Results]:
    """Adds a case, which builds something with or without scopes and gives its results."""
    CASES[build.__name__] = build
    return build


def calls(scoped: bool, body: Callable[[Any], Any]) -> Results:
    """Results of three calls of a function, some of whose nodes are in groups 1 and 2."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"):
            return body(x)

    results = [tf.nest.flatten(function(tf.constant(numbers(i, 8, 6)))) for i in range(3)]
    groups = {row.group for row in tf.cuda.stream_groups_of(function)}
    assert not scoped or {1, 2} <= groups, groups
    return [x for call in results for x in call]


def runs(fetches: Any, others: Any, placeholder: Any) -> Results:
    """Results of five runs of a session."""
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=placeholder.graph, config=config) as session:
        feeds = [{placeholder: numbers(i, 8, 6)} for i in range(5)]
        results = [session.run([fetches, others], feed)[0] for feed in feeds]
    return [x for call in results for x in tf.nest.flatten(call)]


@case
def optionals(scoped: bool) -> Results:
    def body(x: Any) -> Any:
        with on(1, scoped):
            full = tf.experimental.Optional.from_value((tf.tanh(x), x + 1.0))
            empty = tf.experimental.Optional.empty(full.element_spec)
        with on(2, scoped):
            a, b = full.get_value()
            there = empty.has_value()
        with on(1, scoped):
            a = tf.cond(there, lambda: empty.get_value()[0], lambda: a * b)
        return a, there, full.has_value()

    return calls(scoped, body)


@case
def iterator_until_its_end(scoped: bool) -> Results:
    data = iter(tf.data.Dataset.from_tensor_slices(numbers(1, 5, 8, 6)))

    def body(x: Any) -> Any:
        count = tf.constant(0)
        for _ in tf.range(3):
            with on(1, scoped):
                element = data.get_next_as_optional()
            with on(2, scoped):
                if element.has_value():
                    with on(1, scoped):
                        x = tf.tanh(x + element.get_value())
                    count += 1
        return x, count

    results = calls(scoped, body)
    assert [int(count) for count in results[1::2]] == [3, 2, 0]
    return results


@case
def tensor_arrays(scoped: bool) -> Results:
    def body(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
        with on(1, scoped):
            for i in tf.range(8):
                array = array.write(i, tf.tanh(x[i]))
        with on(2, scoped):
            a, row = array.stack(), array.read(3)
        with on(1, scoped):
            array = array.write(2, row * 2.0)
        with on(2, scoped):
            b = array.stack()
        with tf.device("/GPU:1"), on(1, scoped):
            c = tf.sin(b)
        return a, b, c, tf.gradients(tf.reduce_sum(a * b * c), x)

    return calls(scoped, body)


@case
def lists_of_lists(scoped: bool) -> Results:
    row = {"element_shape": tf.constant([6]), "element_dtype": tf.float32}
    scalar = {"element_shape": tf.constant([], tf.int32), "element_dtype": tf.variant}

    def body(x: Any) -> Any:
        ops = tf.raw_ops
        with on(1, scoped):
            inner = ops.EmptyTensorList(max_num_elements=-1, **row)
            for i in range(3):
                inner = ops.TensorListPushBack(input_handle=inner, tensor=tf.sin(x[i]))
        with on(2, scoped):
            outer = ops.EmptyTensorList(max_num_elements=-1, **scalar)
            outer = ops.TensorListPushBack(input_handle=outer, tensor=inner)
            outer = ops.TensorListPushBack(input_handle=outer, tensor=tf.zeros_like(inner))
        with on(1, scoped):
            outer, zeros = ops.TensorListPopBack(input_handle=outer, **scalar)
            _, again = ops.TensorListPopBack(input_handle=outer, **scalar)
            both = tf.add_n([inner, again])
        with on(2, scoped):
            return [ops.TensorListStack(input_handle=list_, **row) for list_ in (both, zeros)]

    return calls(scoped, body)


@case
def old_tensor_arrays(scoped: bool) -> Results:
    tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), tf.device("/GPU:0"):
            x = tf1.placeholder(tf.float32, [8, 6])
            array = tf1.TensorArray(tf.float32, 8, clear_after_read=False)
            with on(1, scoped):
                array = array.unstack(tf.tanh(x))

            def body(i: Any, total: Any) -> Any:
                with on(2, scoped):
                    row = array.read(i)
                with on(1, scoped):
                    return i + 1, tf.sin(total + row)

            with on(2, scoped):
                total = tf.while_loop(lambda i, _: i < 8, body, [0, x[0]])[1]
            with on(1, scoped):
                stacked = array.stack()
            gradient = tf.gradients(tf.reduce_sum(total) * tf.reduce_sum(stacked * x), x)
            return runs([total, stacked, gradient], [], x)
    finally:
        tf1.enable_control_flow_v2()


@case
def stage_and_unstage(scoped: bool) -> Results:
    def body(x: Any) -> Any:
        name = f"stage_{scoped}"
        with on(1, scoped):
            tf.raw_ops.Stage(values=[tf.tanh(x), x * 2.0], shared_name=name)
        with on(2, scoped):
            a, b = tf.raw_ops.Unstage(dtypes=[tf.float32, tf.float32], shared_name=name)
            return tf.sin(a) * b

    return calls(scoped, body)


@case
def unstage_before_stage(scoped: bool) -> Results:
    """Nothing orders the two, and what takes blocks its thread until something is there."""
    with tf.Graph().as_default(), tf.device("/GPU:0"):
        x = tf1.placeholder(tf.float32, [8, 6])
        name = f"unstage_{scoped}"
        with on(2, scoped):
            (taken,) = tf.raw_ops.Unstage(dtypes=[tf.float32], shared_name=name)
            result = tf.sin(taken)
        with on(1, scoped):
            stage = tf.raw_ops.Stage(values=[tf.tanh(x)], shared_name=name)
        return runs([result], [stage], x)


@case
def queue_of_a_function(scoped: bool) -> Results:
    queue = tf.queue.FIFOQueue(10, [tf.float32], [[8, 6]])

    def body(x: Any) -> Any:
        with on(1, scoped):
            queue.enqueue(tf.tanh(x))
        with on(2, scoped):
            return tf.sin(queue.dequeue())

    return calls(scoped, body)


@case
def queues_that_wait(scoped: bool) -> Results:
    """Nothing but the queues orders the branches: each waits for the next, the last for none."""
    with tf.Graph().as_default(), tf.device("/GPU:0"):
        x = tf1.placeholder(tf.float32, [8, 6])
        queues = [tf1.FIFOQueue(2, [tf.float32], [[8, 6]]) for _ in range(20)]
        taken, given = [], []
        for i, queue in enumerate(queues):
            with on(1 + i % 2, scoped):
                taken.append(tf.sin(queue.dequeue()))
        for i, queue in enumerate(queues):
            with on(2 - i % 2, scoped):
                value = taken[i + 1] if i + 1 < len(queues) else x
                given.append(queue.enqueue(tf.tanh(value) + 0.25))
        results = runs(taken, given, x)
    last = [np.sin(np.tanh(numbers(i, 8, 6)) + 0.25) for i in range(5)]
    assert np.allclose(results[len(queues) - 1 :: len(queues)], last, atol=1e-5)
    return results


@case
def barrier(scoped: bool) -> Results:
    with tf.Graph().as_default(), tf.device("/GPU:0"):
        x = tf1.placeholder(tf.float32, [8, 6])
        types = [tf.float32, tf.float32]
        with tf.device("/CPU:0"):
            handle = tf.raw_ops.Barrier(component_types=types, shapes=[[6], [6]])
        inserted = []
        for i, keys in enumerate((["a", "b"], ["b", "a"])):
            with on(1 + i, scoped):
                inserted.append(
                    tf.raw_ops.BarrierInsertMany(
                        handle=handle,
                        keys=tf.constant(keys),
                        values=tf.tanh(x[2 * i : 2 * i + 2]),
                        component_index=i,
                    )
                )
        with on(1, scoped):
            taken = tf.raw_ops.BarrierTakeMany(handle=handle, num_elements=2, component_types=types)
            order = tf.argsort(tf.strings.to_hash_bucket_fast(taken.keys, 1000))
        with on(2, scoped):
            values = [tf.sin(tf.gather(v, order)) for v in taken.values]
        return runs(values, inserted, x)


@case
def lookup_tables(scoped: bool) -> Results:
    keys = tf.range(1, 4, dtype=tf.int64)
    static = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, tf.constant([0.5, 0.25, 0.125])), -1.0
    )
    words = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "bb"]), tf.range(2)), -1
    )
    mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, 0.0, -1, -2)

    def body(x: Any) -> Any:
        with on(1, scoped):
            key = tf.reshape(tf.cast(tf.abs(x) * 4.0, tf.int64), [-1])
            a = static.lookup(key)
        with on(2, scoped):
            mutable.insert(tf.range(6, dtype=tf.int64), x[0])
            b = mutable.lookup(key)
        with on(1, scoped):
            dense.insert(tf.range(6, dtype=tf.int64), x[1] * 2.0)
            c = dense.lookup(key)
        with on(2, scoped):
            d = words.lookup(tf.constant(["a", "x", "bb"]))
        return a, b, c, d, tf.sin(a + b * c), mutable.size(), dense.size()

    return calls(scoped, body)


@case
def random_numbers(scoped: bool) -> Results:
    """Branches with random ops of their own seeds and generators of their own."""
    tf.random.set_seed(5)
    generators = [tf.random.Generator.from_seed(3)]
    with tf.device("/GPU:0"):
        generators.append(tf.random.Generator.from_seed(4))

    def body(x: Any) -> Any:
        found: list[Any] = []
        for group in (1, 2, 1):
            seed = 10 * len(found)
            with on(group, scoped):
                found += [
                    tf.random.normal([4, 4], seed=seed),
                    tf.random.uniform([3], seed=seed + 1),
                    tf.random.truncated_normal([5], seed=seed + 2),
                    tf.random.shuffle(x, seed=seed + 3),
                    tf.nn.dropout(x, 0.5, seed=seed + 4),
                    tf.random.gamma([3], [1.0, 2.0], seed=seed + 5),
                    tf.random.categorical(x, 3, seed=seed + 6),
                    tf.random.poisson([2], [3.0, 4.0], seed=seed + 7),
                    *[g.normal([3]) for g in generators],
                ]
        return found

    return calls(scoped, body)


@case
def custom_gradients(scoped: bool) -> Results:
    with tf.device("/GPU:0"):
        v = tf.Variable(numbers(7, 8, 6))

    @tf.custom_gradient
    def twice(x: Any) -> Any:
        with on(2, scoped):
            y = tf.tanh(x)

        def gradient(dy: Any) -> Any:
            with on(1, scoped):
                return dy * (1.0 - y * y) * 2.0

        return y, gradient

    @tf.custom_gradient
    def times_variable(x: Any) -> Any:
        def gradient(dy: Any, variables: Any = ()) -> Any:
            return dy * v, [dy * x for _ in variables]

        return x * v, gradient

    def body(x: Any) -> Any:
        with on(1, scoped):
            y = twice(x) * tf.sin(x)
        with on(2, scoped):
            z = twice(y) + twice(x)
        with tf.GradientTape() as tape:
            with on(1, scoped):
                product = times_variable(z)
            with on(2, scoped):
                result = twice(product)
        return z, result, tape.gradient(result, v), tf.gradients(tf.reduce_sum(z), x)

    return calls(scoped, body)


@case
def recomputed_gradients(scoped: bool) -> Results:
    with tf.device("/GPU:0"):
        v = tf.Variable(tf.eye(6) * 0.75)

    @tf.recompute_grad
    def block(y: Any) -> Any:
        with on(2, scoped):
            y = tf.tanh(tf.matmul(y, v))
        return tf.sin(y)

    def body(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            with on(1, scoped):
                y = block(x)
            with on(2, scoped):
                loss = tf.reduce_sum(block(y) * y)
        return loss, tape.gradient(loss, [x, v])

    return calls(scoped, body)


@case
def nested_maps(scoped: bool) -> Results:
    def row(r: Any) -> Any:
        with on(2, scoped):
            a = tf.map_fn(lambda e: tf.sin(e) * 2.0 + tf.reduce_sum(r), r)
        with on(1, scoped):
            return tf.tanh(a) + tf.map_fn(lambda e: e * e, r)

    def body(x: Any) -> Any:
        with on(1, scoped):
            a = tf.map_fn(row, x)
        with on(2, scoped):
            b = tf.scan(lambda total, r: tf.tanh(total + r), x)
        with on(1, scoped):
            c = tf.vectorized_map(lambda r: tf.sin(r) * 2.0, x)
            d = tf.foldl(lambda total, r: total * r + 1.0, x)
        return a, b, c, d, tf.gradients(tf.reduce_sum(a * b), x)

    return calls(scoped, body)


@case
def images_and_text(scoped: bool) -> Results:
    picture = tf.random.stateless_uniform([5, 4, 3], [1, 2], 0, 256, tf.int32)
    png = tf.io.encode_png(tf.cast(picture, tf.uint8))

    def body(x: Any) -> Any:
        with on(1, scoped):
            image = tf.cast(tf.io.decode_png(png, 3), tf.float32) / 255.0
            text = tf.strings.as_string(tf.cast(x * 100.0, tf.int32))
        with on(2, scoped):
            text = tf.strings.join([text, "1"])
            raw = tf.io.decode_raw(tf.strings.reduce_join(text), tf.uint8)
        with on(1, scoped):
            bucket = tf.strings.to_hash_bucket_fast(text, 100)
            kept = tf.io.serialize_tensor(tf.tanh(x))
            ragged = tf.strings.split(tf.constant(["a b", "c d e"])).to_tensor()
        with on(2, scoped):
            back = tf.io.parse_tensor(kept, tf.float32)
            coded = tf.io.encode_base64(kept)
        with on(1, scoped):
            number = tf.reduce_sum(image) + tf.strings.to_number(text)
            return number, tf.strings.length(text), raw, bucket, ragged, tf.sin(back), coded

    return calls(scoped, body)


def plain(x: Any) -> Any:
    """An array with bytes of a fixed length in place of pointers to Python's."""
    array = np.asarray(x)
    return np.array(array.tolist(), "S") if array.dtype == object else array


def special_values() -> None:
    """Each case without scopes, then each with them."""
    expected = {name: [plain(x) for x in build(False)] for name, build in CASES.items()}
    assert used() <= leaders(), used()
    different = []
    for name, build in CASES.items():
        found = [plain(x) for x in build(True)]
        if not same(found, expected[name]):
            different.append(name)
        # A wrong value anywhere is found.
        assert not same([found[0] + 1 if found[0].dtype.kind == "f" else b"", *found[1:]], found)
    assert not different, different
    assert used() >= {(0, 0), (0, 1), (0, 2), (1, 1)}, used()


def test_special_values_and_state() -> None:
    """Variants, queues, tables, random numbers and so on, across groups."""
    run(special_values, TF_GPU_STREAM_GROUP_COUNT="3")


# SavedModels.


class Saved(tf.Module):
    """A model on two GPUs."""

    def __init__(self, scoped: bool) -> None:
        super().__init__()
        self.scoped = scoped
        with tf.device("/GPU:0"):
            self.v = tf.Variable(numbers(0, 6, 6))
        with tf.device("/GPU:1"):
            self.w = tf.Variable(numbers(1, 6, 6))

    @tf.function(input_signature=[tf.TensorSpec([None, 6])])
    def __call__(self, x: Any) -> Any:
        with tf.device("/GPU:0"), on(1, self.scoped):
            a = tf.tanh(tf.matmul(x, self.v))
        with tf.device("/GPU:1"), on(2, self.scoped):
            b = tf.matmul(tf.map_fn(lambda row: tf.sin(row) * 2.0, x), self.w)
        with tf.device("/GPU:0"):
            return either(a * b)

    @tf.function(input_signature=[tf.TensorSpec([None, 6])])
    def train(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x) - x))
        for variable, g in zip(
            (self.v, self.w), tape.gradient(loss, [self.v, self.w]), strict=True
        ):
            variable.assign_sub(0.1 * g)
        return loss


def trained(model: Any) -> list[Any]:
    """What a model gives before and after some steps, and its losses."""
    x = tf.constant(numbers(2, 8, 6))
    results = [model(x), *[model.train(x) for _ in range(3)], model(x), model.v, model.w]
    return [result.numpy() for result in results]


def save(folder: str) -> None:
    """Saves a model with scopes, and what one without gives."""
    expected = trained(Saved(scoped=False))
    assert used() == leaders()
    model = Saved(scoped=True)
    tf.saved_model.save(model, f"{folder}/model", {"serve": model.__call__})
    assert same(trained(model), expected)
    assert used() == {(0, 0), (0, 1), (1, 0), (1, 2)}, used()
    np.savez(f"{folder}/expected.npz", *expected)


def load(folder: str, groups: list[tuple[int, int]]) -> None:
    """Loads it, as an object and in a session, and compares."""
    with np.load(f"{folder}/expected.npz") as file:
        expected = [file[name] for name in file.files]
    model = tf.saved_model.load(f"{folder}/model")
    x = numbers(2, 8, 6)
    (served,) = model.signatures["serve"](tf.constant(x)).values()
    assert same([served.numpy()], expected[:1])
    assert same(trained(model), expected)
    with tf1.Session(graph=tf.Graph()) as session:
        signature = tf1.saved_model.load(session, ["serve"], f"{folder}/model").signature_def[
            "serve"
        ]
        (tensor,), (output,) = signature.inputs.values(), signature.outputs.values()
        assert same([session.run(output.name, {tensor.name: x})], expected[:1])
    assert used() == set(groups), used()


def test_saved_model_keeps_scopes(tmp_path: Path) -> None:
    """It gives the same with node level, where its groups are used, and without."""
    folder = str(tmp_path)
    run(save, folder, TF_GPU_STREAM_GROUP_COUNT="3")
    run_all(
        [
            partial(
                run,
                load,
                folder,
                [(0, 0), (0, 1), (1, 0), (1, 2)],
                TF_GPU_STREAM_GROUP_COUNT="3",
            ),
            partial(
                run,
                load,
                folder,
                [(0, 0), (1, 0)],
                TF_GPU_STREAM_GROUP_COUNT="1",
                TF_NODE_LEVEL_MULTISTREAM="false",
            ),
        ]
    )
