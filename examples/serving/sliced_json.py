# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""JSON that is parsed in pieces, so that other threads run meanwhile, and within a limit of memory.

`json.loads` holds Python's lock from the first byte to the last, and makes objects that take up to
100 times the memory of their text. Here the text is parsed window by window:

    [[1, 2], [3, 4], [5, 6], [7, 8      a window: what is before its last comma outside of inner
    `--------------------'^             lists and strings is parsed by json.loads, at once

A value that is longer than a window is entered: its own elements are parsed in the same way.
"""

from __future__ import annotations

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
_IN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_NAME = re.compile(b'"' + _IN_STRING.pattern + rb'"(?=[ \t\n\r]*:)', re.DOTALL)
_COLON = re.compile(rb"[ \t\n\r]*:[ \t\n\r]*")
_SCALAR = re.compile(rb"[^ \t\n\r,\[\]{}\":]+")
_COMMA, _QUOTE = ord(","), ord('"')
_OPENS: dict[int, Any] = {ord("["): list, ord("{"): dict}
_CLOSES: dict[Any, int] = {list: ord("]"), dict: ord("}")}
_SIZES = {_COMMA: _OF_VALUE, _QUOTE: _OF_STRING, ord("["): _OF_LIST, ord("{"): _OF_OBJECT}
_TOO_DEEP = f"lists and objects are nested more than {_DEEPEST} deep"
_DEPTH = np.zeros(256, np.int8)
_DEPTH[list(_OPENS)] = 1
_DEPTH[list(_CLOSES.values())] = -1


def loads(body: bytes, most_bytes: int) -> Any:
    """Parses JSON as `json.loads` does.

    Args:
      body: the text.
      most_bytes: the most that its values may take.

    Returns:
      The value.

    Raises:
      ServingError: its values are above the limit.
      ValueError: it is not JSON, or nested too deep.
      RecursionError: it is nested too deep.
    """
    if len(body) <= _WINDOW and len(body) * _MOST_OF_A_BYTE <= most_bytes:
        return json.loads(body)
    encoding = json.detect_encoding(body)
    if encoding != "utf-8":
        body = body.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
    return _Parser(body, most_bytes).value()


class _Open:
    """A list or object whose end has not been parsed."""

    def __init__(self, kind: type) -> None:
        self.value: Any = kind()
        self.kind = kind
        self.after_comma = False
        self.after_element = False
        self.name: str | None = None

    def add(self, value: Any) -> None:
        """Adds one element, which is complete."""
        if self.kind is list:
            self.value.append(value)
        else:
            self.value[self.name] = value
        self.name = None
        self.after_element, self.after_comma = True, False


class _Window:
    """A part of the text: where elements of lists and objects end in it.

    Args:
      text: the part, which begins outside of strings.
      begin: where it begins.
    """

    def __init__(self, text: bytes, begin: int) -> None:
        self.begin = begin
        if b"\\" in text:  # so that what is escaped ends no string
            text = _ESCAPED.sub(b"ss", text)
            text = text[:-1] if text.endswith(b"\\") else text
        kinds = np.frombuffer(text, np.uint8)
        if b'"' in text:
            quotes = kinds == _QUOTE
            inside = np.cumsum(quotes, dtype=np.int32) & 1
            kinds = np.where(inside, 0, kinds)  # of a string the closing quote is left
            if inside[-1]:
                kinds = kinds[: np.flatnonzero(quotes)[-1]]  # the last one does not end here
        self.kinds = kinds
        self.depth = np.cumsum(_DEPTH[kinds], dtype=np.int32)
        self._commas = np.flatnonzero(kinds == _COMMA)
        self._depth_of_commas = self.depth[self._commas]

    @property
    def end(self) -> int:
        return self.begin + len(self.kinds)

    def deepest(self) -> int:
        return int(self.depth.max(initial=0))

    def last_end(self, at: int) -> tuple[int | None, bool]:
        """Where the last element ends that is complete, of the list or object that `at` is in.

        Returns:
          The place of the comma or bracket after it, if any, and whether it is the bracket.
        """
        first = at - self.begin
        level = self.depth[first - 1] if first else 0
        below = self.depth[first:] < level
        bracket = int(below.argmax()) if below.size else 0
        if below.size and below[bracket]:
            return at + bracket, True
        commas = self._commas[(self._depth_of_commas == level) & (self._commas >= first)]
        return (self.begin + int(commas[-1]) if commas.size else None), False


class _Parser:
    def __init__(self, body: bytes, most_bytes: int) -> None:
        self._body = body
        self._at = 0
        self._most = self._left = most_bytes
        self._open = [_Open(list)]  # stands around the text
        self._window = _Window(b"", 0)

    def value(self) -> Any:
        self._skip_blank()
        self._one_value()
        while len(self._open) > 1:
            self._step()
        self._skip_blank()
        if self._at < len(self._body):
            raise self._error("Extra data")
        return self._open[0].value[0]

    def _step(self) -> None:
        """Parses what comes next within the innermost open value."""
        top = self._open[-1]
        if top.name is not None:
            self._one_value()
        elif top.after_element:
            self._skip_blank()
            if self._next() == _COMMA:
                self._at += 1
                top.after_element, top.after_comma = False, True
            else:
                self._close()
        elif not self._elements() and not self._skip_blank():
            # It is longer than a window, or the window ends within it.
            if top.kind is dict:
                self._name()
            else:
                self._one_value()

    def _elements(self) -> bool:
        """Parses the elements that end in a window; returns whether there are any."""
        top, at = self._open[-1], self._at
        if not at + _WINDOW // 2 <= self._window.end:
            window = self._window = _Window(self._body[at : at + _WINDOW], at)
            if window.deepest() + len(self._open) > _DEEPEST:
                raise self._error(_TOO_DEEP)
        end, is_bracket = self._window.last_end(at)
        if end is None:
            return False
        if self._body[at:end].strip(_BLANK):
            self._take(self._window.kinds[at - self._window.begin : end - self._window.begin])
            values = self._parsed(at, end, top.kind)
            if top.kind is list:
                top.value += values
            else:
                top.value.update(values)
            top.after_comma = False
        elif not is_bracket or top.after_comma:
            raise self._error("Expecting value")
        self._at = end
        if is_bracket:
            self._close()
        else:
            self._at += 1
            top.after_comma = True
        return True

    def _one_value(self) -> None:
        """Parses one value, or enters it if it is a list or object."""
        first = self._next()
        if first in _OPENS:
            if len(self._open) > _DEEPEST:
                raise self._error(_TOO_DEEP)
            self._take(np.array([first]))
            self._open.append(_Open(_OPENS[first]))
            self._at += 1
            return
        begin, end = self._at, self._at + 1
        if first == _QUOTE:
            end = self._end_of_string(end)
        else:
            found = _SCALAR.match(self._body, begin, begin + _WINDOW)
            end = found.end() if found else end
        self._take(np.array([first]))
        self._open[-1].add(self._parsed(begin, end, None))
        self._at = end

    def _name(self) -> None:
        """Parses the name of a value."""
        found = _NAME.match(self._body, self._at, self._at + _WINDOW)
        if not found:
            raise self._error("Expecting property name enclosed in double quotes")
        self._open[-1].name = self._parsed(found.start(), found.end(), None)
        self._at = found.end()
        colon = _COLON.match(self._body, self._at, self._at + _WINDOW)
        self._at = colon.end() if colon else self._at
        self._skip_blank()

    def _close(self) -> None:
        top = self._open[-1]
        if self._next() != _CLOSES[top.kind]:
            raise self._error("Expecting ',' delimiter")
        self._open.pop()
        self._at += 1
        self._open[-1].add(top.value)

    def _end_of_string(self, at: int) -> int:
        """Where a string ends whose text begins at `at`."""
        while True:
            found = _IN_STRING.match(self._body, at, at + _WINDOW)
            end = found.end() if found else at
            if end < len(self._body) and self._body[end] == _QUOTE:
                return end + 1
            if end == at:
                raise self._error("Unterminated string")
            at = end

    def _parsed(self, begin: int, end: int, kind: type | None) -> Any:
        """A part of the text: a value, or (of a list or an object) elements of it."""
        text = self._body[begin:end].decode("utf-8", "surrogatepass")
        if kind is not None:
            text = f"[{text}]" if kind is list else f"{{{text}}}"
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise self._error(error.msg) from None

    def _take(self, kinds: Any) -> None:
        """Counts the memory of what is to be parsed, of whose strings there is one quote each."""
        self._left -= _OF_VALUE + sum(
            size * int(np.count_nonzero(kinds == kind)) for kind, size in _SIZES.items()
        )
        if self._left < 0:
            raise too_large(
                f"the values of the body take more than {self._most} bytes (--max-request-mb). In "
                f"JSON a number counts as {_OF_VALUE} bytes, a string as {_OF_VALUE + _OF_STRING}, "
                f"a list as {_OF_VALUE + _OF_LIST}, an object as {_OF_VALUE + _OF_OBJECT}."
            )

    def _next(self) -> int:
        if self._at >= len(self._body):
            raise self._error("Expecting value")
        return self._body[self._at]

    def _skip_blank(self) -> bool:
        """Skips blanks; returns whether there were any."""
        begin = self._at
        while self._at < len(self._body):
            window = self._body[self._at : self._at + _WINDOW]
            self._at += len(window) - len(window.lstrip(_BLANK))
            if self._at < len(self._body) and self._body[self._at] not in _BLANK:
                break
        return self._at > begin

    def _error(self, what: str) -> ValueError:
        return ValueError(f"{what}: near byte {self._at}")
