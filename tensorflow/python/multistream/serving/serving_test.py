# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.serving_callable` gives what the function gives, or an error that names the argument."""

import array
import collections
import concurrent.futures
import ctypes
import gc
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream.serving import serving_arrays, serving_callable

Spec = tf.TensorSpec


class Pair(NamedTuple):
    left: Any
    right: Any


def bits(results: Any) -> list[Any]:
    arrays = [x.numpy() if tf.is_tensor(x) else np.asarray(x) for x in tf.nest.flatten(results)]
    return [(x.shape, x.dtype, x.tobytes()) for x in arrays]


def bound(body: Callable[..., Any], *specs: Any) -> tuple[Any, Any]:
    """A function, and its serving callable."""
    function = tf.function(body, input_signature=specs, autograph=False)
    return function, tf.cuda.serving_callable(function)


def noted_long_ways(serve: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets "long" for each call of the callable that takes the way in Python."""
    ways: list[str] = []
    in_python = serve._call_in_python

    def counted(*arguments: Any) -> Any:
        ways.append("long")
        return in_python(*arguments)

    monkeypatch.setattr(serve, "_call_in_python", counted)
    return ways


double, serve_double = bound(lambda x: x * 2.0, Spec([None, 3], name="x"))
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)

DTYPES = [
    *(tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.bool, tf.complex64),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_type_and_shape(dtype: Any) -> None:
    function, serve = bound(lambda x: (x, tf.stack([x, x])), Spec(None, dtype))
    for shape in [(), (0,), (3,), (2, 0, 3), (2, 1, 3)] * 3:
        x = np.random.RandomState(1).randint(0, 2, shape).astype(dtype.as_numpy_dtype)
        result = serve(x)
        assert bits(result) == bits(function(tf.constant(x)))
        assert all(type(r) is np.ndarray and r.flags.owndata for r in result)


def test_structures() -> None:
    """Results keep their structure, values that are no tensors included; so do arguments."""

    @tf.function(autograph=False)
    def function(first: Any, training: bool = False, *, more: Any) -> Any:
        y = first + (0.0 if training else more["b"])
        return {"z": y, "a": [Pair(y, None), (more["a"][0],)], "n": ()}

    more = {"b": Spec([]), "a": [Spec([2], tf.int64)]}
    serve = tf.cuda.serving_callable(function, Spec([None]), more=more)
    given = {"b": np.float32(3), "a": [np.array([4, 5])]}
    x = np.ones(3, np.float32)
    result = serve(x, more=given)
    assert bits(result["z"]) == bits(x + 3)
    assert type(result["a"][0]) is Pair
    assert result["a"][0].right is None
    assert isinstance(result["a"][1], tuple)
    assert list(result) == ["z", "a", "n"]
    assert bits(result["a"][1]) == bits(np.array([4, 5]))
    assert bits(serve(more=given, first=x)["z"]) == bits(x + 3)
    with pytest.raises(TypeError, match="'training' that is a tensor"):
        serve(x, training=True, more=given)
    with pytest.raises(TypeError, match="Argument more of function has another structure"):
        serve(x, more={"b": np.float32(3)})
    with pytest.raises(TypeError, match=r"more\.a\.0 of function is of dtype float32"):
        serve(x, more={**given, "a": [x]})
    with pytest.raises(TypeError, match=r"takes 1 arguments by position \(first\)"):
        serve(x, given)


_X = Spec([])


@pytest.mark.parametrize(
    "structure",
    [
        *(_X, [], None, [_X], (_X,), {"b": _X, "a": _X}, [_X, None, "text", (3, _X)]),
        {"z": [_X, {"y": _X, "x": (_X, None)}], "a": Pair([_X], {"w": _X})},
        collections.OrderedDict(b=_X, a=[_X, Pair(None, _X)]),
        (Pair(_X, _X), collections.OrderedDict(), [[[_X]]]),
    ],
    ids=repr,
)
def test_results_are_packed_as_nest_packs_them(structure: Any) -> None:
    leaves = tf.nest.flatten(structure)
    arrays = [np.array(i) for i in range(leaves.count(_X))]
    left = iter(arrays)
    right = tf.nest.pack_sequence_as(structure, [next(left) if x is _X else x for x in leaves])
    packed = serving_arrays.packer(structure)(arrays)
    # The same arrays in the same structure; dicts have their order.
    assert repr(packed) == repr(right)


def test_no_arguments_and_no_results() -> None:
    counter = tf.Variable(0)

    @tf.function(input_signature=[])
    def count() -> None:
        counter.assign_add(1)

    serve = tf.cuda.serving_callable(count)
    for _ in range(5):
        assert serve() is None
    assert counter.numpy() == 5


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(ROWS),
        np.repeat(ROWS, 2, 1)[:, ::2],
        ROWS[::-1][::-1],
        ROWS.astype(">f4"),
        np.broadcast_to(ROWS[:1], (2, 3)),
        ROWS.view(np.matrix),
        memoryview(ROWS.copy()),
        memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3)),
        tf.constant(ROWS),
        tf.Variable(ROWS),
    ],
    ids=range(10),
)
def test_what_has_an_array(x: Any) -> None:
    """Arrays of other strides and byte orders, read-only, or with a buffer or `__array__`."""
    assert bits(serve_double(x)) == bits(2 * np.asarray(x, np.float32))


def test_dlpack() -> None:
    class Other:
        def __dlpack__(self, **options: Any) -> Any:
            return ROWS.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return ROWS.__dlpack_device__()

    class OnGpu(Other):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("not in host memory")

    assert bits(serve_double(Other())) == bits(2 * ROWS)
    with pytest.raises(TypeError, match="Argument x of .*OnGpu, which is not an array in host"):
        serve_double(OnGpu())


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: serve_double(ROWS.astype(float)), TypeError, "x .*float64, and must be float32"),
        (lambda: serve_double(1.5), TypeError, "Argument x .*float64"),
        (lambda: serve_double(ROWS[0]), ValueError, r"x .*shape \(3,\).*\(None, 3\)"),
        (serve_double, TypeError, "was not given x"),
        (lambda: serve_double(y=ROWS), TypeError, "has no argument 'y'. It takes x"),
        (lambda: serve_double(ROWS, ROWS), TypeError, r"takes 1 arguments by position \(x\)"),
        (lambda: serve_double(ROWS, x=ROWS), TypeError, "'x' by position and by name"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], error: type[Exception], says: str) -> None:
    """The error names the argument, what it is and what it must be; the next call is right."""
    with pytest.raises(error, match=says):
        call()
    assert bits(serve_double(ROWS)) == bits(double(ROWS))


@pytest.mark.parametrize(
    ("bind", "error", "says"),
    [
        (lambda: bound(tf.strings.as_string, Spec([])), TypeError, "Result 0 .*string"),
        (lambda: bound(tf.size, tf.RaggedTensorSpec([None, 2])), TypeError, "dense tensors only"),
        (lambda: tf.cuda.serving_callable(len), TypeError, "a SavedModel's signature"),
        (lambda: tf.cuda.serving_callable(tf.function(abs)), ValueError, "Pass what it takes"),
        (
            lambda: tf.cuda.serving_callable(double.get_concrete_function(), Spec([])),
            ValueError,
            "has its specs already",
        ),
    ],
)
def test_what_cannot_be_bound(bind: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        bind()


def test_a_numpy_whose_arrays_are_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_arrays, "_POINTER_AT", serving_arrays._POINTER_AT + 8)
    with pytest.raises(NotImplementedError, match=f"NumPy {re.escape(np.__version__)}"):
        tf.cuda.serving_callable(double)


def test_most_calls_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """C++ takes plain arrays of known shapes; all others are checked or converted in Python."""
    _, serve = bound(
        lambda x, y: {"sum": x + tf.cast(y, tf.float32), "x": x},
        Spec([None, 3]),
        Spec([], tf.int32),
    )
    ways = noted_long_ways(serve, monkeypatch)
    big = np.ones((10_000, 3), np.float32)
    n = np.int32(2)
    two = np.array(2, np.int32)
    for (x, y), way in (
        ((ROWS, two), "long"),  # a new shape
        ((ROWS, two), "short"),
        ((ROWS + 1, two), "short"),
        ((ROWS[:1], two), "long"),
        ((ROWS[:1], two), "short"),
        ((ROWS[::-1], two), "long"),  # not contiguous
        ((ROWS.astype(">f4"), two), "long"),
        ((np.asfortranarray(ROWS), two), "long"),
        ((ROWS, n), "long"),  # a NumPy scalar is no array
        ((big, two), "long"),
        ((big, two), "long"),  # too large to be copied with the GIL held
        ((ROWS, two), "short"),
    ):
        ways.append("short")
        result = serve(x, y)
        assert ways.pop() == way
        assert bits([result["sum"], result["x"]]) == bits(
            [np.asarray(x, "f4") + 2, np.asarray(x, "f4")]
        )
    with pytest.raises(TypeError, match="float64, and must be float32"):
        serve(ROWS.astype(np.float64), two)


def test_threads_with_many_shapes() -> None:
    """Threads that call with shapes that are new to all, and results whose shapes values decide."""
    _, serve = bound(
        lambda x, n: (tf.boolean_mask(x, x > 0), tf.reduce_sum(x) + n), Spec([None]), Spec([])
    )

    def calls(seed: int) -> int:
        random = np.random.RandomState(seed)
        for _ in range(150):
            x = random.randint(-2, 3, random.randint(1, 9)).astype(np.float32)
            n = np.array(random.randint(9), np.float32)
            positive, total = serve(x, n)
            assert positive.tolist() == x[x > 0].tolist()
            assert total == x.sum() + n
        return seed

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert list(threads.map(calls, range(8))) == list(range(8))


def test_an_array_is_not_resized_while_a_call_reads_it() -> None:
    """Neither the array nor its base can be resized, even with refcheck=False."""
    owner, alone = np.ones(6, np.float32), np.ones(3, np.float32)
    raised = []

    def resize(y: Any) -> Any:
        for x in (owner, alone):
            try:
                x.resize(1000, refcheck=False)
            except ValueError:
                raised.append(x)
        return y

    def during(x: Any, y: Any) -> Any:
        return tf.numpy_function(resize, [x], tf.float32) + y

    _, serve = bound(during, Spec([None]), Spec([None]))
    assert serve(owner[3:], alone).tolist() == [2, 2, 2]
    assert [x is y for x, y in zip(raised, (owner, alone), strict=True)] == [True, True]
    owner.resize(7, refcheck=False)  # after the call it may be
    alone.resize(4, refcheck=False)
    for growing in (bytearray(b"ab"), array.array("B", b"ab")):

        def grow(y: Any, growing: Any = growing) -> Any:
            with pytest.raises(BufferError):
                growing.append(0)
            return y

        _, serve = bound(
            lambda x, grow=grow: tf.numpy_function(grow, [x], tf.uint8), Spec([2], tf.uint8)
        )
        assert serve(memoryview(growing)).tolist() == [97, 98]
        growing.append(0)


def test_a_value_of_each_call_cannot_be_bound() -> None:
    @tf.function(input_signature=[])
    def function() -> Any:
        graph = tf.compat.v1.get_default_graph()
        return graph.capture_call_time_value(lambda: tf.constant(1.0), Spec([])) + 1.0

    with pytest.raises(ValueError, match="only known at each call"):
        tf.cuda.serving_callable(function)


def test_results_and_arguments_are_the_callers() -> None:
    kept = tf.Variable(tf.zeros([2, 3]))

    def keep(x: Any) -> Any:
        kept.assign(x)
        return x

    _, serve = bound(keep, Spec([2, 3]))
    x = ROWS.copy()
    first = serve(x)
    x[:] = -1
    second = serve(x)
    x[:] = -2
    assert bits(first) == bits(ROWS)
    assert (kept.numpy() == -1).all()
    second[:] = 7
    assert (kept.numpy() == -1).all()
    assert (serve(x) == -2).all()


def test_many_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_callable, "_MOST_SHAPES", 10)
    serve = tf.cuda.serving_callable(double)
    for rows in [*range(40), *range(40)]:
        x = np.full((rows, 3), rows, np.float32)
        assert bits(serve(x)) == bits(2 * x)
    assert len(serve._plans) <= 10


def test_errors_of_tensorflow() -> None:
    def body(x: Any) -> Any:
        with tf.device("/CPU:0"):  # a GPU asserts nothing, and gathers zeros
            positive = tf.debugging.assert_positive(x, "must be positive")
            with tf.control_dependencies([positive]):
                return tf.gather(tf.range(3), tf.cast(x, tf.int32))

    function, serve = bound(body, Spec([]))
    for x, says in ((-1, "must be positive"), (5, "is not in \\[0, 3\\)")):
        raised = []
        for call in (function, serve):
            with pytest.raises(tf.errors.InvalidArgumentError, match=says) as caught:
                call(np.float32(x))
            raised.append(caught.value)
        assert raised[0].error_code == raised[1].error_code
        assert "Detected at node" in raised[1].message
    assert serve(np.float32(1)) == 1


def test_it_keeps_what_it_calls() -> None:
    """Only the callable refers to the function, its variables and captured tensors."""
    v = tf.Variable(1.0)

    def made() -> Any:
        w, t = tf.Variable(3.0), tf.constant(np.full([2], 4.0, np.float32))
        function = tf.function(lambda x: x * v * w + t, input_signature=[Spec([])])
        return tf.cuda.serving_callable(function.get_concrete_function())

    serve = made()
    gc.collect()
    for i in range(5):
        v.assign(float(i))
        assert serve(np.float32(2)).tolist() == [6 * i + 4] * 2


@pytest.mark.parametrize("name", [None, b"TFE_Context"])
def test_the_context_is_found_whatever_its_capsule_is_called(name: bytes | None) -> None:
    """The name is new in TensorFlow 2.22."""
    new = ctypes.pythonapi["PyCapsule_New"]
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    assert serving_callable._context_of(new(64, name, None)) == 64


def test_saved_model(tmp_path: Any) -> None:
    """Signatures take arguments by name, a single one also by position; functions by position."""

    class Model(tf.Module):
        def __init__(self) -> None:
            self.w = tf.Variable(np.random.RandomState(0).randn(3, 2).astype(np.float32))

        @tf.function(input_signature=[Spec([None, 3], name="b"), Spec([], name="a")])
        def two(self, b: Any, a: Any) -> Any:
            return {"y": b @ self.w * a, "x": a}

        @tf.function(input_signature=[Spec([None, 3])])
        def one(self, b: Any) -> Any:
            return {"y": b @ self.w}

    model = Model()
    signatures = {"two": model.two, "one": model.one}
    tf.saved_model.save(model, str(tmp_path), signatures=signatures)
    loaded = tf.saved_model.load(str(tmp_path))
    a = np.float32(0.5)
    for signature in (loaded.signatures["two"], model.two, loaded.two):
        expected = bits(signature(b=tf.constant(ROWS), a=tf.constant(a)))
        serve = tf.cuda.serving_callable(signature)
        result = serve(a=a, b=ROWS)
        assert bits(result) == expected
        assert set(result) == {"x", "y"}
    assert bits(serve(ROWS, a)) == expected
    one = loaded.signatures["one"]
    serve = tf.cuda.serving_callable(one)
    assert bits(serve(ROWS)) == bits(serve(b=ROWS)) == bits(one(tf.constant(ROWS)))
    with pytest.raises(TypeError, match="was not given b"):
        serve()


def test_saved_model_of_tensorflow_1(tmp_path: Any) -> None:
    tf1 = tf.compat.v1
    folder = str(tmp_path / "model")
    with tf1.Graph().as_default(), tf1.Session() as session:
        x, a, b = (tf1.placeholder(tf.float32, shape) for shape in ([None], [], []))
        w = tf1.get_variable("w", [2], initializer=tf1.ones_initializer())
        session.run(tf1.global_variables_initializer())
        inputs, outputs = {"x": x, "a": a, "b": b}, {"y": x * w + a - b / 3}
        tf1.saved_model.simple_save(session, folder, inputs, outputs)
    serve = tf.cuda.serving_callable(tf.saved_model.load(folder).signatures["serving_default"])
    result = serve(x=np.ones(2, np.float32), a=np.float32(2), b=np.float32(6))
    assert (result["y"] == 1).all()


def test_strings_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """They arrive as TensorFlow has them; elements that are no strings have Python's error."""
    function, serve = bound(
        lambda s, x: (tf.strings.to_hash_bucket_fast(s, 1 << 30), x * 2.0),
        Spec([None, None], tf.string, "s"),
        Spec([None]),
    )
    ways = noted_long_ways(serve, monkeypatch)
    length = tf.cuda.serving_callable(
        tf.function(tf.strings.length, input_signature=[Spec(None, tf.string)])
    )
    assert length("four") == 4 and length(["a", "list"]).tolist() == [1, 4]
    texts = [["", "a", "äöü"], ["東京", "\0", "x" * 100_000]]
    kinds = [
        np.array(texts),
        np.array(texts, object),
        np.array([[x.encode() for x in row] for row in texts], object),
        np.array([[b"a", "b", b""], ["c", b"d\0", "e"]], object),
        np.array([[b"ab", b"c", b""], [b"", b"d", b"e"]]),
        np.array(texts)[::-1, ::-1],
        np.array(texts).astype(">U100000"),
    ]
    x = np.ones(2, np.float32)
    with pytest.raises(TypeError, match="s of .*float32, and must be of str or bytes"):
        serve(np.ones((2, 3), np.float32), x)
    assert ways.pop() == "long"
    serve(kinds[0], x)  # a new shape
    assert ways.pop() == "long"
    for s in kinds:
        for given in (s, s[:0], s):
            expected = function(tf.constant(np.asarray(given, object), tf.string), tf.constant(x))
            assert bits(serve(given, x)) == bits(expected)
    assert ways == ["long"]  # no rows are a new shape, once
    ways.clear()
    for wrong in (1, None, "\udc80", np.bytes_(b"a")):
        s = np.array([["a", wrong, "b"], ["c", "d", "e"]], object)
        if isinstance(wrong, bytes):  # of another type: in Python
            serve(s, x)
        else:
            with pytest.raises(TypeError, match="s of .* an element that is not a string"):
                serve(s, x)
        assert ways.pop() == "long"
    assert bits(serve(kinds[1], x)) == bits(function(tf.constant(texts), tf.constant(x)))
    assert not ways


def test_strings_that_another_thread_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If C++ finds fewer strings than the array has by then, Python reads them."""
    with monkeypatch.context() as context:
        context.setattr(serving_arrays, "flat_list", lambda x: x.reshape(-1).tolist()[1:])
        function, serve = bound(tf.strings.length, Spec([None], tf.string))
    texts = np.array(["a", "bb", "ccc"])
    for _ in range(3):
        assert bits(serve(texts)) == bits(function(tf.constant(texts)))
