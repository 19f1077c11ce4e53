# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""How many bytes all requests that are being handled may have together."""

import contextlib
from collections.abc import Callable, Iterator

import grpc
from serving_error import ServingError

_LARGE_REQUESTS = 16
_SMALL = 1 << 16


class RequestMemory:
    """Bounds the bytes of requests that are being read, wait or run; for the event loop only.

    Small requests are always taken: those that are large cannot keep them out.
    """

    def __init__(self, most_bytes_of_one: int) -> None:
        self.used = 0
        self._most = _LARGE_REQUESTS * most_bytes_of_one

    @contextlib.contextmanager
    def of_request(self) -> Iterator[Callable[[int], None]]:
        """Counts a request until it is handled; the function counts more bytes, if they fit."""
        size = counted = 0

        def read(more: int) -> None:
            nonlocal size, counted
            size += more
            new = size - counted if size > _SMALL else 0
            if new and self.used + new > self._most:
                raise ServingError(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"the requests that are being handled have {self.used} bytes, and {new} more "
                    f"are above {self._most} ({_LARGE_REQUESTS} times --max-request-mb). Try again "
                    "later.",
                )
            counted += new
            self.used += new

        try:
            yield read
        finally:
            self.used -= counted
