# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""JSON that is parsed in pieces, so that other threads run meanwhile, and within a limit of memory.

`json.loads` holds Python's lock from the first byte to the last, and makes objects that take up to
100 times the memory of their text. Here NumPy counts the values and finds the commas first. Then
each list or object is cut at its own commas into windows, which json.loads parses one by one:

    [[1, 2], [3, 4], [5, 6], [7, 8]]
     `------------'  `------------'

An element that is longer than a window is cut in the same way.
"""

import json
import re
from typing import Any

import numpy as np
from serving_error import too_large

_WINDOW = 1 << 16
_DEEPEST = 32
# What Python keeps for a value, in bytes, at most about.
_OF_VALUE, _OF_STRING, _OF_LIST, _OF_OBJECT = 32, 80, 128, 288
# No byte of a text makes more: "{}," makes _OF_VALUE + _OF_OBJECT.
_MOST_OF_A_BYTE = 128

_BLANK = b" \t\n\r"
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_NAME = re.compile(rb'[ \t\n\r]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\n\r]*:', re.DOTALL)
_COMMA, _QUOTE = ord(","), ord('"')
_SIZES = {_COMMA: _OF_VALUE, _QUOTE: _OF_STRING, ord("["): _OF_LIST, ord("{"): _OF_OBJECT}
_CLOSES = {b"[": b"]", b"{": b"}"}
_DEPTH = np.zeros(256, np.int8)
_DEPTH[[ord("["), ord("{")]] = 1
_DEPTH[[ord("]"), ord("}")]] = -1


def loads(body: bytes, most_bytes: int) -> Any:
    """Parses JSON as `json.loads` does, with values that take no more than `most_bytes`.

    Raises a ServingError above the limit; ValueError or RecursionError for JSON nested too deep.
    """
    if len(body) <= _WINDOW and len(body) * _MOST_OF_A_BYTE <= most_bytes:
        return json.loads(body)
    encoding = json.detect_encoding(body)
    if encoding != "utf-8":
        body = body.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
    return _Text(body, most_bytes).value(0, len(body), 1)


class _Text:
    """A text whose commas are known: for each, its place and how many brackets are open there."""

    def __init__(self, body: bytes, most_bytes: int) -> None:
        self._body = body
        places, depths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        left, at, depth, in_string = most_bytes - _OF_VALUE, 0, 0, 0
        while at < len(body):
            text = body[at : at + _WINDOW]
            if b"\\" in text:  # a quote that is escaped ends no string
                text = _ESCAPED.sub(b"ss", text)
                if len(text) > 1 and text.endswith(b"\\"):
                    text = text[:-1]
            kinds = np.frombuffer(text, np.uint8)
            inside = (np.cumsum(kinds == _QUOTE) + in_string) & 1
            kinds = np.where(inside, 0, kinds)  # of a string, the closing quote is left
            depth_at = np.cumsum(_DEPTH[kinds], dtype=np.int64) + depth
            if depth_at.max() > _DEEPEST:
                raise ValueError(f"lists and objects are nested more than {_DEEPEST} deep")
            left -= sum(size * np.count_nonzero(kinds == x) for x, size in _SIZES.items())
            if left < 0:
                raise too_large(
                    f"the values of the body take more than {most_bytes} bytes (--max-request-mb). "
                    f"In JSON a number counts as {_OF_VALUE} bytes, a string as "
                    f"{_OF_VALUE + _OF_STRING}, a list as {_OF_VALUE + _OF_LIST}, an object as "
                    f"{_OF_VALUE + _OF_OBJECT}."
                )
            commas = np.flatnonzero(kinds == _COMMA)
            places.append(commas + at)
            depths.append(depth_at[commas])
            at, depth, in_string = at + len(text), depth_at[-1], inside[-1]
        self._places, self._depths = np.concatenate(places), np.concatenate(depths)

    def value(self, begin: int, end: int, depth: int) -> Any:
        """Parses the value in a part of the text, whose elements have `depth` open brackets."""
        begin, end = self._stripped(begin, end)
        first = self._body[begin : begin + 1]
        if end - begin <= _WINDOW or first == b'"':
            return self._parsed(begin, end, "{}")
        if first not in _CLOSES:
            raise self._error("Expecting value", begin)
        if self._body[end - 1 : end] != _CLOSES[first]:
            raise self._error("Expecting ',' delimiter", end - 1)
        found: Any = [] if first == b"[" else {}
        inside = slice(*np.searchsorted(self._places, (begin, end)))
        commas = self._places[inside][self._depths[inside] == depth]
        ends = np.append(commas, end - 1)
        at, i = begin + 1, 0
        while i < len(ends):
            # As many elements as fit in a window, or else one that is longer.
            i = max(i + 1, int(np.searchsorted(ends, at + _WINDOW, "right")))
            stop = int(ends[i - 1])
            begin, end = self._stripped(at, stop)
            if begin == end:
                if len(commas):
                    raise self._error("Expecting value", at)
            elif stop - at > _WINDOW:
                self._add_long(found, at, stop, depth)
            elif first == b"[":
                found += self._parsed(at, stop, "[{}]")
            else:
                found.update(self._parsed(at, stop, "{{{}}}"))
            at = stop + 1
        return found

    def _stripped(self, begin: int, end: int) -> tuple[int, int]:
        """A part without the blanks around it. No copy is longer than a window."""
        while begin < end:
            text = self._body[begin : min(begin + _WINDOW, end)]
            begin += len(text) - len(text.lstrip(_BLANK))
            if text.strip(_BLANK):
                break
        while begin < end:
            text = self._body[max(begin, end - _WINDOW) : end]
            end -= len(text) - len(text.rstrip(_BLANK))
            if text.strip(_BLANK):
                break
        return begin, end

    def _add_long(self, found: Any, begin: int, end: int, depth: int) -> None:
        if isinstance(found, list):
            found.append(self.value(begin, end, depth + 1))
            return
        name = _NAME.match(self._body, begin, end)
        if name is None:
            raise self._error("Expecting property name enclosed in double quotes", begin)
        found[self._parsed(*name.span(1), "{}")] = self.value(name.end(), end, depth + 1)

    def _parsed(self, begin: int, end: int, form: str) -> Any:
        text = self._body[begin:end].decode("utf-8", "surrogatepass")
        try:
            return json.loads(form.format(text))
        except json.JSONDecodeError as error:
            raise self._error(error.msg, begin) from None

    def _error(self, what: str, at: int) -> ValueError:
        return ValueError(f"{what}: near byte {at}")
