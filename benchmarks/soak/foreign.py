# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""CUDA calls of another library in the process, which wait for or change the whole GPU."""

from __future__ import annotations

import pathlib
import random
import sys
import threading

from models import Place, Results, Work
from tally import Tally

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
from foreign_cuda import GLOBAL_CAPTURES, ForeignCuda

# What ends a process of stock TensorFlow, too: soundness/foreign_calls.py has them. cuDNN captures
# streams of its own, and the driver crashes where a wait for all of the GPU meets one.
LEFT_OUT = (GLOBAL_CAPTURES, "device synchronize")


class ForeignCalls(Work):
    """Calls of each kind that other libraries make, in any order; each must succeed."""

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.local = threading.local()  # CUDA binds a GPU per thread

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Makes the calls of one kind."""
        if not hasattr(self.local, "cuda"):
            self.local.cuda = ForeignCuda()
        cuda = self.local.cuda
        kinds = cuda.kinds()
        for left_out in LEFT_OUT:
            del kinds[left_out]
        kind = draw.choice(list(kinds))
        cuda.codes.clear()
        kinds[kind]()
        tally.step()
        failed = [call for call in cuda.codes if not call.endswith(": 0")]
        tally.check(", ".join(failed), kind)
