# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether results are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Different right results of one input that are remembered; beyond them each is compared anew.
REMEMBERED = 64


class Judge:
    """Compares results with the expected ones.

    Most results have the bits of one that was compared before, so that a comparison takes a
    microsecond of Python's lock: clients are measured, not this.

    Args:
        expected: the result of each input.
        tolerance: largest difference, as a part of the largest expected number; 0: the same bits.
    """

    def __init__(self, expected: Sequence[np.ndarray], tolerance: float) -> None:
        self._expected = expected
        self._allowed = [tolerance * float(np.abs(e).max()) if tolerance else 0.0 for e in expected]
        self._right = [{e.tobytes()} for e in expected]

    def is_right(self, i: int, result: np.ndarray) -> bool:
        """Tells whether this is a right result of input `i`."""
        data = result.tobytes()
        if data in self._right[i] and result.shape == self._expected[i].shape:
            return True
        if not self._allowed[i] or result.shape != self._expected[i].shape:
            return False
        # Not a number is above nothing and below nothing.
        right = bool(np.abs(result - self._expected[i]).max() <= self._allowed[i])
        if right and len(self._right[i]) < REMEMBERED:
            self._right[i].add(data)
        return right
