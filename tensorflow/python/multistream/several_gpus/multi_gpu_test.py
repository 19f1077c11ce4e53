# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""v1 programs with ops on several GPUs give the same results as with one group per GPU.

A test runs all programs of this file in a process of its own, with the GPUs and groups that it
names, and compares them with those of a process whose GPUs have one group each.
"""

import contextlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from multistream.testing import kit

CPU = "/cpu:0"
BATCH, WIDTH = 12, 6  # rows divide by 2 and 3 GPUs
STEPS = 6
READS = 8  # read-only steps, more than a GPU has groups

Programs = dict[str, Callable[["Setup"], list[Any]]]
PROGRAMS: Programs = {}


def program(function: Callable[["Setup"], list[Any]]) -> Callable[["Setup"], list[Any]]:
    PROGRAMS[function.__name__] = function
    return function


class Setup:
    """The settings with which the programs are built and run.

    Args:
      scoped: whether branches are on streams.
    """

    def __init__(self, scoped: bool) -> None:
        self.scoped = scoped
        self.gpus = [f"/gpu:{i}" for i in range(len(tf.config.list_physical_devices("GPU")))]

    def branch(self, number: int) -> Any:
        """The stream of a branch; each GPU has two at least."""
        return tf.stream(number % 2) if self.scoped else contextlib.nullcontext()


def session(graph: Any, soft: bool = False) -> Any:
    """A session configured as programs for several GPUs configure theirs."""
    config = tf.ConfigProto(allow_soft_placement=soft)
    config.gpu_options.allow_growth = True
    config.gpu_options.per_process_gpu_memory_fraction = 0.4
    made = tf.Session(graph=graph, config=config)
    with graph.as_default():
        made.run(tf.global_variables_initializer())
    return made


def devices_of(made: Any, fetches: Any, feeds: Any = None) -> dict[str, str]:
    """The device of each op of a step, such as "GPU:1"."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    made.run(fetches, feeds, options=options, run_metadata=metadata)
    return {
        node.name: node.device.split("device:")[-1]
        for graph in metadata.partition_graphs
        for node in graph.node
    }


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


@program
def placed_by_hand(setup: Setup) -> list[Any]:
    """Products of variables on each GPU, two branches a GPU, and their sum on the CPU."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(11)
        products = []
        for i, gpu in enumerate(setup.gpus):
            with tf.device(gpu):
                for k in range(2):
                    with setup.branch(k):
                        start = tf.random_uniform_initializer(-1, 1)
                        a = tf.get_variable(f"a{i}{k}", [4, WIDTH], initializer=start)
                        b = tf.get_variable(f"b{i}{k}", [WIDTH, 4], initializer=start)
                        products.append(tf.tanh(tf.matmul(a, b), name=f"product{i}{k}"))
        with tf.device(CPU):
            total = tf.add_n(products, name="total")
    with session(graph) as made:
        results: list[list[Any]] = [made.run([total, *products]) for _ in range(READS)]
        placed = devices_of(made, total)
    for i in range(len(setup.gpus)):
        assert {placed[f"a{i}{k}"] for k in range(2)} == {f"GPU:{i}"}, placed
        assert {placed[f"product{i}{k}"] for k in range(2)} == {f"GPU:{i}"}, placed
    assert placed["total"] == "CPU:0"
    assert all(kit.same(found, results[0]) for found in results)
    assert kit.same([sum(results[0][2:], results[0][1])], results[0][:1])
    return results[0]


@program
def placed_softly(setup: Setup) -> list[Any]:
    """Places ops on a missing GPU; without soft placement that is TensorFlow's error."""
    missing = f"/gpu:{len(setup.gpus)}"
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [BATCH, WIDTH])
        with tf.device(setup.gpus[-1]), setup.branch(1):
            y = tf.sin(x, name="there")
        with tf.device(missing), setup.branch(1):
            z = tf.matmul(y, y, transpose_b=True, name="product")
            z = tf.tanh(z, name="nowhere")
        with tf.device(setup.gpus[0]):
            total = tf.reduce_sum(z * z, 0)
    feeds = {x: numbers(1, BATCH, WIDTH)}
    with session(graph, soft=True) as made:
        results: list[list[Any]] = [made.run([z, total], feeds) for _ in range(READS)]
        placed = devices_of(made, total, feeds)
    assert placed["there"] == f"GPU:{len(setup.gpus) - 1}", placed
    assert placed["nowhere"] in {"CPU:0", *(f"GPU:{i}" for i in range(len(setup.gpus)))}, placed
    assert all(kit.same(found, results[0]) for found in results)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session(graph)
    for text in (
        "device for operation product",
        f"to /device:{missing[1:].upper()}",
        f"GPU:{len(setup.gpus) - 1} ]",
    ):
        assert text in str(caught.value), (text, str(caught.value))
    return results[0]


@program
def model_parallel(setup: Setup) -> list[Any]:
    """Layers on one GPU after another, each of two branches; trained with momentum."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(12)
        x = tf.placeholder(tf.float32, [BATCH, WIDTH])
        y = x
        for i, gpu in enumerate([*setup.gpus, *setup.gpus]):
            with tf.device(gpu):
                halves = []
                for k in range(2):
                    with setup.branch(k):
                        w = tf.get_variable(f"w{i}{k}", [WIDTH, WIDTH // 2])
                        b = tf.get_variable(f"b{i}{k}", [WIDTH // 2])
                        halves.append(tf.tanh(tf.matmul(y, w) + b, name=f"half{i}{k}"))
                y = tf.concat(halves, 1)
        with tf.device(setup.gpus[-1]):
            loss = tf.reduce_mean(tf.squared_difference(y, x))
            optimizer = tf.train.MomentumOptimizer(0.5, 0.9)
        train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
        variables = tf.global_variables()
    # Momentum's constants have no device of their own.
    with session(graph, soft=True) as made:
        results = []
        for step in range(STEPS):
            results.append(made.run([loss, train], {x: numbers(step, BATCH, WIDTH)})[0])
        feeds = {x: numbers(99, BATCH, WIDTH)}
        reads = [made.run(y, feeds) for _ in range(READS)]
        placed = devices_of(made, [loss, train], feeds)
        results += [reads[0], *made.run(variables)]
    for i in range(2 * len(setup.gpus)):
        device = f"GPU:{i % len(setup.gpus)}"
        ops = [name for name in placed if name.split("/")[-1].startswith(f"half{i}")]
        of_gradient = [name for name in placed if f"half{i}0_grad/" in name]
        assert ops and {placed[name] for name in ops} == {device}, (device, placed)
        assert of_gradient and {placed[name] for name in of_gradient} == {device}, placed
    assert len(variables) == 2 * 8 * len(setup.gpus)  # variables and momenta
    assert all(kit.same([found], reads[:1]) for found in reads)
    return results


def tower(setup: Setup, x: Any, labels: Any) -> Any:
    """A tower's loss, from the collection of its scope; all towers share the variables."""
    ends = []
    for k in range(2):
        with setup.branch(k), tf.variable_scope(f"branch{k}"):
            w = tf.get_variable("w", [WIDTH, 8])
            b = tf.get_variable("b", [8], initializer=tf.constant_initializer(0.125))
            hidden = tf.nn.relu(tf.matmul(x, w) + b)
            ends.append(tf.matmul(hidden, tf.get_variable("out", [8, 3])))
            tf.add_to_collection("losses", 1e-3 * tf.nn.l2_loss(w))
    errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.add_n(ends))
    tf.add_to_collection("losses", tf.reduce_mean(errors))


def averaged(of_towers: list[list[Any]]) -> list[Any]:
    """The mean of each variable's gradients."""
    return [tf.reduce_mean(tf.stack(found), 0) for found in zip(*of_towers, strict=True)]


def train_towers(setup: Setup, device_of_tower: Callable[[int], Any], update_on: Any) -> list[Any]:
    """Losses, gradients and weights of towers that share a batch out."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(13)
        x = tf.placeholder(tf.float32, [BATCH, WIDTH])
        labels = tf.placeholder(tf.int32, [BATCH])
        with tf.device(CPU):
            parts = list(
                zip(tf.split(x, len(setup.gpus)), tf.split(labels, len(setup.gpus)), strict=True)
            )
        losses, gradients = [], []
        for i, part in enumerate(parts):
            with (
                tf.variable_scope("model", reuse=i > 0),
                tf.name_scope(f"tower{i}") as scope,
                tf.device(device_of_tower(i)),
            ):
                tower(setup, *part)
                of_tower = tf.get_collection("losses", scope)
                assert len(of_tower) == 3
                losses.append(tf.add_n(of_tower, name="loss"))
                gradients.append(tf.gradients(losses[-1], tf.trainable_variables()))
        variables = tf.trainable_variables()
        assert len(variables) == 6
        with tf.device(update_on):
            mean = averaged(gradients)
        # Reference variables: reads must be done before a variable changes.
        with tf.device(update_on), tf.control_dependencies([*losses, *mean]):
            train = tf.train.GradientDescentOptimizer(0.3).apply_gradients(
                list(zip(mean, variables, strict=True))
            )
    with session(graph) as made:
        results = []
        for step in range(STEPS):
            feeds = {x: numbers(step, BATCH, WIDTH), labels: np.arange(BATCH) * (step + 1) % 3}
            reads = [made.run([*losses, *mean], feeds) for _ in range(READS)]
            assert all(kit.same(found, reads[0]) for found in reads)
            results += made.run([*losses, *mean, train], feeds)[:-1]
            assert kit.same(results[-len(reads[0]) :], reads[0])
        placed = devices_of(made, [*losses, train], feeds)
        results += made.run(variables)
    for i, loss in enumerate(losses):
        assert placed[loss.op.name] == f"GPU:{i}", placed
    results.append(np.array([placed[v.op.name] for v in variables]))
    return results


@program
def towers_with_variables_on_the_cpu(setup: Setup) -> list[Any]:
    """The CPU keeps the variables and averages the gradients."""

    def device_of_tower(i: int) -> Any:
        def device(op: Any) -> str:
            return CPU if op.type in ("VariableV2", "VarHandleOp") else setup.gpus[i]

        return device

    results = train_towers(setup, device_of_tower, CPU)
    assert set(results[-1]) == {"CPU:0"}
    return results


class LeastLoaded:
    """Places variables where the fewest bytes of them are, and all else on one GPU.

    Args:
      gpu: for all else.
      loads: bytes of the variables on each GPU, which all towers count together.
    """

    def __init__(self, gpu: str, loads: dict[str, int]) -> None:
        self._gpu = gpu
        self._loads = loads

    def __call__(self, op: Any) -> str:
        if op.type not in ("VariableV2", "VarHandleOp"):
            return self._gpu
        chosen = min(self._loads, key=lambda name: self._loads[name])
        (variable,) = op.outputs
        self._loads[chosen] += variable.shape.num_elements() * variable.dtype.size
        return chosen


@program
def towers_with_variables_on_the_least_loaded_gpu(setup: Setup) -> list[Any]:
    """Every GPU keeps some."""
    loads = dict.fromkeys(setup.gpus, 0)
    results = train_towers(setup, lambda i: LeastLoaded(setup.gpus[i], loads), setup.gpus[0])
    assert set(results[-1]) == {f"GPU:{i}" for i in range(len(setup.gpus))}
    assert sum(loads.values()) == 4 * 2 * (WIDTH * 8 + 8 + 8 * 3)
    return results


def run_programs(scoped: bool, path: str) -> None:
    """Runs all programs; writes their results, and the steps and waits of each group."""
    setup = Setup(scoped)
    results = {name: made(setup) for name, made in PROGRAMS.items()}
    stats = {(s.gpu, s.group): s for s in tf.cuda.stream_stats()}
    counts = {place: (s.steps_started, s.waits) for place, s in stats.items()}
    Path(path).write_bytes(pickle.dumps((results, counts)))


Counts = dict[tuple[int, int], tuple[int, int]]


def found(
    folder: Path, gpus: int, groups: str, node_level: bool = False
) -> tuple[dict[str, list[Any]], Counts]:
    """Results of the programs in a process of their own; branches have streams at node level."""
    path = folder / "results.pickle"
    kit.run_job(
        run_programs,
        node_level,
        str(path),
        first="jobs.tf.disable_v2_behavior()",
        TF_MULTI_STREAM_EMULATED_GPUS=str(gpus),
        TF_GPU_STREAM_GROUP_COUNT=groups,
        TF_NODE_LEVEL_MULTISTREAM=str(node_level).lower(),
    )
    results, counts = pickle.loads(path.read_bytes())
    return results, counts


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], dict[str, list[Any]]]:
    """Results of the programs on the given number of GPUs with one group each."""
    made: dict[int, dict[str, list[Any]]] = {}

    def on_gpus(gpus: int) -> dict[str, list[Any]]:
        if gpus not in made:
            made[gpus], counts = found(tmp_path_factory.mktemp("expected"), gpus, "1")
            if not kit.ON_GPU:  # on a GPU, one group is stock TensorFlow, which has no counters
                assert list(counts) == [(i, 0) for i in range(gpus)]
            # The comparison is meaningful only if training changes the weights.
            losses = made[gpus]["model_parallel"][:STEPS]
            assert len({loss.tobytes() for loss in losses}) == STEPS
        return made[gpus]

    return on_gpus


@pytest.mark.parametrize(
    ("gpus", "groups", "node_level"),
    [(2, "2", True), (2, "2,3", False), (2, "2,3", True), (3, "2", False), (3, "2", True)],
)
def test_programs_for_several_gpus_give_the_bits_of_one_group(
    tmp_path: Path, expected: Any, gpus: int, groups: str, node_level: bool
) -> None:
    """Whole steps on groups, and branches of towers on groups."""
    results, counts = found(tmp_path, gpus, groups, node_level)
    sizes = [int(size) for size in groups.split(",")] * (gpus if "," not in groups else 1)
    assert list(counts) == [(i, j) for i, size in enumerate(sizes) for j in range(size)]
    for name, arrays in expected(gpus).items():
        assert kit.same(results[name], arrays), name
    if node_level:
        assert all(counts[i, j][1] > 0 for i in range(gpus) for j in range(2)), counts
    else:
        assert all(steps > 0 for steps, _ in counts.values()), counts
