# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Slices of JSON and of tensors are what the whole is, and none of them is large."""

import itertools
import json
import random
import types
from typing import Any

import numpy as np
import pytest
import rest_json
import sliced_json
import tensor_protos
import tensorflow as tf
from broken_clients_test import EFFORT
from serving_error import ServingError
from tensorflow.core.framework import tensor_pb2

MOST = 1 << 30
STRINGS = ("", "abc", '\\"],[{}', "é\ud800", "x" * 150, "\n\\")


def drawn(draw: random.Random, deep: int = 0) -> Any:
    """A value of JSON."""
    kind = draw.random()
    if deep < 5 and kind < 0.5:
        return [drawn(draw, deep + 1) for _ in range(draw.randrange(8))]
    if deep < 5 and kind < 0.7:
        names = draw.sample(["a", "b", 'c"d', "é", "\\", "]"], draw.randrange(4))
        return {name: drawn(draw, deep + 1) for name in names}
    return draw.choice([1, 1.5, -3, 1 << 70, True, False, None, *STRINGS, 1e300])


def text_of(draw: random.Random, value: Any) -> bytes:
    """The value as JSON, with blanks and faults now and then."""
    separators = draw.choice([(",", ":"), (", ", " : "), (" ,\n\t", ":  ")])
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5, separators=separators)
    if draw.random() < 0.3:
        text = " " * draw.randrange(200) + text.replace(",", "," + " " * draw.randrange(150))
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if draw.random() < 0.6:
        for _ in range(draw.randrange(1, 3)):
            at = draw.randrange(len(data) + 1)
            wrong = draw.choices(b'[]{},:"\\ 1atn\n', k=draw.randrange(3))
            data[at : at + draw.randrange(3)] = bytes(wrong)
    return bytes(data)


def result(loads: Any, text: bytes) -> str | None:
    try:
        return json.dumps(loads(text))
    except ValueError:
        return None


@pytest.mark.parametrize("window", [64, 1000])
def test_sliced_json_is_that_of_the_standard_library(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    sizes = []

    def loads(text: Any) -> Any:
        if text[:1] != '"':  # a string is parsed at once, however long
            sizes.append(len(text))
        return json.loads(text)

    spied = {"loads": loads, "detect_encoding": json.detect_encoding}
    spy = types.SimpleNamespace(**spied, JSONDecodeError=json.JSONDecodeError)
    monkeypatch.setattr(sliced_json, "json", spy)
    monkeypatch.setattr(sliced_json, "_WINDOW", window)
    monkeypatch.setattr(sliced_json, "_MOST_OF_A_BYTE", MOST + 1)  # slices for short texts, too
    right = 0
    for seed in range(300 * EFFORT):
        draw = random.Random(seed)
        text = text_of(draw, drawn(draw))
        expected = result(json.loads, text)
        assert result(lambda text: sliced_json.loads(text, MOST), text) == expected, text
        right += expected is not None
    assert right > 90
    assert max(sizes) <= window + 2
    blanks = b" " * 2 * window
    for text in (b"[%b]", b"{%b}", b"[1,%b]", b'{"a":%b[%b1]%b}', b"%b[1, [2]%b]%b", b"[%b[]]"):
        text = text.replace(b"%b", blanks)  # noqa: PLW2901
        assert result(lambda text: sliced_json.loads(text, MOST), text) == result(json.loads, text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_of_json(encoding: str) -> None:
    value = {"inputs": ["é"] * 100_000}
    text = json.dumps(value, ensure_ascii=False).encode(encoding)
    assert sliced_json.loads(text, MOST) == value


def test_json_above_the_limit_is_refused_by_its_values() -> None:
    numbers = json.dumps([1] * 100_000).encode()
    sliced_json.loads(numbers, 100_002 * 32 + 128)
    with pytest.raises(ServingError, match="take more than 3200000 bytes"):
        sliced_json.loads(numbers, 100_000 * 32)
    # Commas and brackets of a string are no values.
    assert sliced_json.loads(json.dumps([",[" * 500_000]).encode(), 1000)


VALUES: tuple[Any, ...] = (
    *([], 1, [1, 2], [1.5] * 20, [[1] * 7] * 5, [[[1.5, 2]] * 9] * 2, [[]] * 30, [True] * 20),
    *([1] * 30 + [1.5], [True] * 9 + [2] * 9, ["a"] * 20, [["a", {"b64": "aaaa"}]] * 9),
    *([1 << 63] * 20 + [1], [-1, 1 << 63], [1 << 70] * 9, [[1] * 9, [1] * 8], [[1] * 9, 1]),
    *([None] * 9, ["a"] * 9 + [1], [["a"] * 9, "a"], [[[1]] * 9, [1] * 9]),
)


@pytest.mark.parametrize("dtype", [tf.float32, tf.uint64, tf.string])
def test_arrays_of_slices_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    def array(value: Any, size: int) -> Any:
        monkeypatch.setattr(rest_json, "_SLICE", size)
        try:
            found = rest_json.array_of(value, "x", dtype)
        except ServingError as error:
            return "lengths" in error.message or "signature takes" in error.message
        return found.dtype, found.shape, found.tolist()

    for value in VALUES:
        assert array(value, 5) == array(value, 1 << 20), value


def test_answers_in_slices_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    arrays = {
        "a": draw.normal(size=[20]).astype(np.float32),
        "b": draw.normal(size=[20, 3]),
        "c": np.full([20], b"x", object),
        "d": draw.integers(0, 9, [20, 4, 5]),
        "e": np.zeros([20, 0]),
        "f_bytes": np.full([20, 2], b"\xff", object),
    }
    single = {"y": np.float32(1.5) * np.ones([]), "z": np.full([3], np.nan)}
    columns = [dict(c) for n in (1, 2, 6) for c in itertools.combinations(arrays.items(), n)]
    for by_row, results in itertools.chain(
        itertools.product((True, False), columns), [(False, single)]
    ):
        asked = types.SimpleNamespace(by_row=by_row)
        texts = []
        for size in (1 << 20, 100, 7, 1):
            monkeypatch.setattr(rest_json, "_SLICE", size)
            texts.append(rest_json.answer(asked, results))
        assert len(set(texts)) == 1
        assert json.loads(texts[0]).keys() == {"predictions" if by_row else "outputs"}


@pytest.mark.parametrize(
    "dtype",
    [
        *(tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int32, tf.int64),
        *(tf.uint8, tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128, tf.string),
    ],
)
def test_tensors_in_slices_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    for size in (12, 4):  # all values, and a third of them: the rest is as the last one
        whole = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
        for i in range(size):
            value = f"{i}".encode() if dtype == tf.string else tf.cast(i, dtype).numpy()
            one = tf.make_tensor_proto(value, dtype)
            one.ClearField("tensor_shape")
            whole.MergeFrom(one)
        if whole.tensor_content:
            whole.ClearField("tensor_content")
        for dimension in (2, 6):
            whole.tensor_shape.dim.add(size=dimension)
        if dtype == tf.string and size < 12:
            continue  # only a single string stands for all
        found = []
        for most in (1 << 20, 4, 2):
            monkeypatch.setattr(tensor_protos, "_SLICE", most)
            found.append(tensor_protos.array_of(whole, "x", MOST))
        assert found[0].shape == (2, 6)
        for array in found[1:]:
            assert array.dtype == found[0].dtype
            assert array.tolist() == found[0].tolist()
