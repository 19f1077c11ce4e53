# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured training of the same variables from several threads, as in captured_updates.py."""

from __future__ import annotations

import pathlib
import random
import sys

import tensorflow as tf
from draw import KINDS
from models import GPU, Place, Results, Work
from tally import Tally

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
from updated_variables import Variables, make_inputs
from updating_threads import Callables, Together


class CapturedTraining(Work):
    """Worker 0 reads, assigns and fails, all others train; at the end all counts are exact."""

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.tally: Tally | None = None
        if place.groups == 1:
            return  # the reference process has nothing to compare with
        variables = Variables("auto", place.folder)
        callables = Callables(variables, make_inputs(place.seed))
        # With op determinism, TensorFlow adds to rows of a GPU's variable on the host, and two
        # threads may both begin with the same values: stock TensorFlow loses such updates, too.
        left_out = {"rows"} if place.gpu else set()
        self.together = Together(
            callables,
            KINDS["captured_training"],
            [i for i, name in enumerate(variables.function_names) if name not in left_out],
            range(len(callables.inputs)),
            str(place.seed),
            failing={"matrices"} if place.gpu else {"matrices", "rows"},
            pace=0.0,
        )

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Runs a block of steps, or an action that disturbs the other threads' steps."""
        self.tally = tally
        tally.step()
        with tf.device(GPU):
            if worker:
                self.together.train(worker, draw)
            elif draw.random() < 0.5:
                self.together.read(draw)
            else:
                self.together.disturb(draw)
        tally.check(self.together.problems.take(), "captured training")

    def close(self) -> None:
        """Compares the variables with their expected values, after all steps."""
        if self.tally is not None:
            self.together.check_end()
            self.tally.check(self.together.problems.take(), "variables at the end")
