# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values other than plain tensors, and state outside variables, across stream groups.

A test names a job, which runs in a process of its own. What a job builds without scopes runs on
group 0 of each GPU and is the reference for the same thing with scopes.
"""

from typing import Any

import tensorflow as tf

from multistream.testing import state_cases  # noqa: F401  It adds its cases to CASES.
from multistream.testing.cases import CASES, Results, calls, case, plain, runs
from multistream.testing.gpus import leaders, numbers, run, used
from multistream.testing.kit import on, same

tf1 = tf.compat.v1


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


def special_values() -> None:
    """Each case without scopes, then each with them."""
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
    assert used() >= {(0, 0), (0, 1), (0, 2), (1, 1)}, used()


def test_special_values_and_state() -> None:
    """Variants, queues, tables, random numbers and so on, across groups."""
    run(special_values, TF_GPU_STREAM_GROUP_COUNT="3")
