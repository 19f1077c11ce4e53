# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values other than plain tensors, and state outside variables, across stream groups.

What is built without scopes runs on group 0 of each GPU, and is the reference.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from multistream.testing.gpus import gpus, leaders, numbers, run, used
from multistream.testing.kit import in_process, on, same

tf1 = tf.compat.v1

Results = list[Any]
CASES: dict[str, Callable[[bool], Results]] = {}


def case(build: Callable[[bool], Results]) -> Callable[[bool], Results]:
    """Registers a case: a function that builds ops, with scopes if told so, and returns results."""
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


def runs(fetches: Any, others: Any, placeholder: Any, config: Any = None) -> Results:
    """Results of five runs of a session."""
    config = config or tf1.ConfigProto()
    config.allow_soft_placement = True
    with tf1.Session(graph=placeholder.graph, config=config) as session:
        feeds = [{placeholder: numbers(i, 8, 6)} for i in range(5)]
        results = [session.run([fetches, others], feed)[0] for feed in feeds]
    return [x for call in results for x in tf.nest.flatten(call)]


def plain(x: Any) -> Any:
    """An array; strings become bytes of a fixed length instead of pointers to Python objects."""
    array = np.asarray(x)
    return np.array(array.tolist(), "S") if array.dtype == object else array


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
def scoped_allocator(scoped: bool) -> Results:
    """Grappler gives two ops one allocation, which an op on the leader makes."""
    config = tf1.ConfigProto()
    rewrites = config.graph_options.rewrite_options
    toggle = rewriter_config_pb2.RewriterConfig
    rewrites.scoped_allocator_optimization = toggle.ON
    rewrites.scoped_allocator_opts.enable_op.append("Abs")
    rewrites.constant_folding = rewrites.arithmetic_optimization = rewrites.remapping = toggle.OFF
    rewrites.min_graph_nodes = -1
    with tf.Graph().as_default(), tf.device("/GPU:0"):
        unused = tf1.placeholder(tf.float32, [8, 6])  # Grappler does not know its shape
        x = tf.random.uniform([8, 6], seed=7)
        with on(1, scoped):
            one = x + 1.0
        with on(2, scoped):
            two = x * 3.0
        return runs([tf.reshape(tf.abs(y), [6, 8]) for y in (one, two)], [], unused, config)


@case
def unstage_before_stage(scoped: bool) -> Results:
    """No edge orders the two ops; Unstage blocks its thread until Stage has put a value."""
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
def queues_that_wait(scoped: bool) -> Results:
    """Only queues order the branches: each waits for the next branch, the last waits for none."""
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
    """Branches whose random ops have seeds and generators of their own."""
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


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="3")
def test_special_values_and_state() -> None:
    """Variants, queues, tables, random numbers and so on, across groups."""
    expected = {name: [plain(x) for x in build(False)] for name, build in CASES.items()}
    assert used() <= leaders(), used()
    different = []
    for name, build in CASES.items():
        found = [plain(x) for x in build(True)]
        if not same(found, expected[name]):
            different.append(name)
        # The test itself would find a wrong value anywhere.
        assert not same([found[0] + 1 if found[0].dtype.kind == "f" else b"", *found[1:]], found)
    assert not different, different
    last = len(gpus()) - 1  # 0 on a machine with one GPU
    assert used() >= {(0, 0), (0, 1), (0, 2), (last, 1)}, used()


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="3", TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION="true")
def test_a_list_that_a_function_has_made_on_another_group() -> None:
    """The group that reads the list holds it: nothing else of the graph is on another group."""
    row = {"element_shape": tf.constant([6]), "element_dtype": tf.float32}

    @tf.function(experimental_attributes={"_noinline": True})
    def make(x: Any) -> Any:
        with on(1, True):
            made = tf.raw_ops.EmptyTensorList(max_num_elements=-1, **row)
            return tf.raw_ops.TensorListPushBack(input_handle=made, tensor=tf.sin(x))

    @tf.function
    def step(x: Any) -> Any:
        with tf.device("/GPU:0"):
            return tf.raw_ops.TensorListStack(input_handle=make(x), **row)

    with tf.device("/GPU:0"):
        x = tf.identity(numbers(1, 6))
    for _ in range(3):
        assert np.allclose(step(x), np.sin(numbers(1, 6))[None])
    assert tf.cuda.stream_stats()[0].peak_bytes_held > 0
