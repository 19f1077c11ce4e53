# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A program's first part: a model that is served, and the requests and answers of its clients.

Messages are written and read byte by byte: tensorflow-serving-api is not needed.
"""

MESSAGES = """
import socket, struct, threading
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.multistream.serving import served_models

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

class Lane:
    # A socket through which requests go, as a front has it (front_frames.h).
    def __init__(self, models):
        self.near, far = socket.socketpair()
        self.thread = threading.Thread(target=models.answer, args=(far,), daemon=True)
        self.thread.start()
    def receive(self, size):
        found = b""
        while len(found) < size:
            more = self.near.recv(size - len(found))
            if not more: raise EOFError
            found += more
        return found
    def batch(self, requests):
        # The answers: bytes, errors, None for Python.
        sizes = [len(request) for request in requests]
        heads = struct.pack(f"={len(sizes) + 1}Q", len(sizes), *sizes)
        self.near.sendall(heads + b"".join(requests))
        self.steps, = struct.unpack("=Q", self.receive(8))
        heads = [struct.unpack("=qQ", self.receive(16)) for _ in requests]
        return [self.answer(code, self.receive(size)) for code, size in heads]
    def answer(self, code, body):
        if code == served_models.ASK_PYTHON:
            check(body == b"", "nothing beside the code")
            return None
        if code:
            return tf.compat.v1.errors.exception_type_from_error_code(code)(
                None, None, body.decode())
        return body
    def __call__(self, request):
        answer, = self.batch([request])
        if isinstance(answer, Exception): raise answer
        return answer
    def close(self):
        self.near.close()
        self.thread.join()

model = Model()
models = served_models.ServedModels()
def served(function, version=300, batch_sizes=(), of=model):
    # Publishes a module's function as the default signature of m; returns its callable.
    import tempfile
    folder = tempfile.mkdtemp()
    tf.saved_model.save(of, folder, signatures={"f": function})
    with tf.device(GPU):
        loaded = tf.saved_model.load(folder)
    kept.append(loaded)
    callable_ = tf.cuda.serving_callable(loaded.signatures["f"])
    devices = served_models.Devices([GPU])
    predictor = served_models.Predictor([callable_], "f", devices, 1 << 20, batch_sizes)
    models.publish("m", version, {"serving_default": predictor})
    callable_.predictor = predictor
    return callable_
kept = []
"""
