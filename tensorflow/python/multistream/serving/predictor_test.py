# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A request of bytes gets the answer that the signature gives for its arrays, or is left alone."""

import textwrap

import pytest

from multistream.testing import kit

MESSAGES = """
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.multistream.serving import predictor

def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value

def entry(name, proto):
    return field(1, name) + field(2, proto.SerializeToString())

def request(model="m", signature="", version=None, **inputs):
    spec = field(1, model) + (field(3, signature) if signature else b"")
    if version is not None: spec += field(2, field(1, version))
    made = {n: x if isinstance(x, tensor_pb2.TensorProto) else tf.make_tensor_proto(x)
            for n, x in inputs.items()}
    return field(1, spec) + b"".join(field(2, entry(n, x)) for n, x in made.items())

def fields(data):
    found, at = [], 0
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift; shift += 7
            if byte < 128: return value
    while at < len(data):
        tag = number()
        size = number()
        if tag & 7 == 2:
            found.append((tag >> 3, data[at:at + size])); at += size
        else:
            found.append((tag >> 3, size))
    return found

def outputs_of(answer):
    entries = [dict(fields(value)) for number, value in fields(answer) if number == 1]
    return {e[1].decode(): tf.make_ndarray(tensor_pb2.TensorProto.FromString(e[2]))
            for e in entries}

class Model(tf.Module):
    def __init__(self):
        with tf.device(GPU):
            self.w = tf.Variable(floats(4, 3))
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x"),
                                  tf.TensorSpec([None], tf.int32, name="ids")])
    def scores(self, x, ids):
        with tf.device(GPU):
            y = tf.tanh(x @ self.w)
            return {"y": y, "picked": tf.gather(y, ids), "ids": ids * 2, "any": y > 0,
                    "sum": tf.reduce_sum(y), "first": tf.constant([1.5, 2.5])}
    @tf.function(input_signature=[tf.TensorSpec(None, tf.string, name="s")])
    def lengths(self, s):
        return {"n": tf.strings.length(s)}
    @tf.function(input_signature=[tf.TensorSpec([], name="x")])
    def fails(self, x):
        with tf.device("/CPU:0"):
            return {"x": tf.debugging.check_numerics(x, "not a number")}

model = Model()
def served(function):
    import tempfile
    folder = tempfile.mkdtemp()
    tf.saved_model.save(model, folder, signatures={"f": function})
    loaded = tf.saved_model.load(folder)
    kept.append(loaded)
    callable_ = tf.cuda.serving_callable(loaded.signatures["f"])
    return callable_, predictor.Predictor(callable_, "f", GPU, 1 << 20)
kept = []
"""


def run(code: str, capture: str = "off", **environment: str) -> None:
    kit.run_captured(MESSAGES, textwrap.dedent(code), capture=capture, **environment)


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_answers_are_those_of_the_callable(capture: str) -> None:
    """Of all batch sizes, with the model's name and the version; also at once from threads."""
    run(
        """
        callable_, predict = served(model.scores)
        def asks(seed, rows):
            random = np.random.default_rng(seed)
            x = random.normal(0, 1, (rows, 4)).astype(np.float32)
            ids = random.integers(0, rows, 5).astype(np.int32)
            return x, ids
        def check_one(seed, rows):
            x, ids = asks(seed, rows)
            answer = predict(request(x=x, ids=ids), "m", 300)
            with tf.device(GPU):
                want = callable_(x=x, ids=ids)
            got = outputs_of(answer)
            check(got.keys() == want.keys() and all(
                got[n].dtype == want[n].dtype and got[n].shape == want[n].shape
                and got[n].tobytes() == want[n].tobytes() for n in want), "bits")
            spec = dict(fields(dict(fields(answer))[2]))
            check((spec[1], dict(fields(spec[2]))[1], spec[3]) == (b"m", 300, b"f"), "spec")
        for i in range(24): check_one(i, 1 + i % 3)
        def client(k):
            for i in range(20): check_one(100 * k + i, 1 + i % 4)
        run_clients(client)
        """,
        capture=capture,
    )


def test_strings_and_errors() -> None:
    """Strings come as they are; the function's error is that of a call."""
    run("""
        _, predict = served(model.lengths)
        answer = outputs_of(predict(request(s=[[b"", b"a"], [bytes(300), b"\\xff"]]), "m", 1))
        check(answer["n"].tolist() == [[0, 1], [300, 1]], "lengths")
        callable_, predict = served(model.fails)
        check(outputs_of(predict(request(x=np.float32(2)), "m", 1))["x"] == 2, "a number")
        for _ in range(3):
            fails(tf.errors.InvalidArgumentError,
                  lambda: predict(request(x=np.float32("nan")), "m", 1), "not a number")
    """)


def test_what_is_not_plain_takes_the_way_in_python() -> None:
    """Other names, types, shapes and sizes; labels, filters, and bytes that are no message."""
    run("""
        _, predict = served(model.scores)
        x, ids = np.zeros((2, 4), np.float32), np.zeros(1, np.int32)
        good = request(x=x, ids=ids)
        check(predict(good, "m", 1) is not None, "plain")
        twice = tf.make_tensor_proto(x)
        for what, bad in {
            "an input is missing": request(x=x), "one is unknown": request(x=x, ids=ids, z=x),
            "another name": request(x=x, i=ids), "a type": request(x=x, ids=ids.astype(np.int64)),
            "a shape": request(x=x[:, :3], ids=ids), "a rank": request(x=x[0], ids=ids),
            "a name twice": request(x=x, ids=ids) + field(2, entry("x", twice)),
            "a filter": good + field(3, "y"), "a label": field(1, field(4, "stable")) + good,
            "large": request(x=np.zeros((1 << 17, 4), np.float32), ids=ids),
            "cut off": good[:-1], "no message": b"\\xff" * 20, "nothing": b"",
        }.items():
            check(predict(bad, "m", 1) is None, what)
        spec = predictor.spec_of(request("ranker", "score", 7, x=x))
        check(spec == ("ranker", "score", 7), "spec")
        check(predictor.spec_of(request(x=x)) == ("m", "", None), "without a version")
        check(predictor.spec_of(b"") == ("", "", None), "empty")
        for bad in (good[:-1], good + field(3, "y"), field(1, field(1, b"\\xff")) + good[5:],
                    field(1, field(2, field(1, (1 << 64) - 1)))):
            check(predictor.spec_of(bad) is None, "not plain")
    """)


def test_signatures_without_names_are_refused() -> None:
    """A callable whose results are not a dict of tensors has no names to answer with."""
    run("""
        f = tf.function(lambda x: [x, x], input_signature=[tf.TensorSpec([2])])
        fails(ValueError, lambda: predictor.Predictor(tf.cuda.serving_callable(f), "f", GPU, 1),
              "signature f")
        check(True, "done")
    """)
