# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cases of state outside variables: queues, stages, tables and random numbers."""

from typing import Any

import numpy as np
import tensorflow as tf

from multistream.testing.cases import Results, calls, case, runs
from multistream.testing.gpus import numbers
from multistream.testing.kit import on

tf1 = tf.compat.v1


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
