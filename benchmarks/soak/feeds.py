# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Big feeds: the result depends on every bit of the feed."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf
from models import GPU, Place, Results, Work, session_config, tf1
from tally import Tally

# Size in MiB, and how often it is drawn.
ON_GPU = ((64, 128, 256), (3, 2, 1))
EMULATED = ((2, 8, 64), (8, 4, 1))


class Feeds(Work):
    """Feeds whole numbers x, no two the same, and compares 2 x + 1, which is exact."""

    name = "feeds"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        with tf.Graph().as_default() as graph, tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None])
            y = x * 2.0 + 1.0
        self.session = tf1.Session(graph=graph, config=session_config())
        self.callable = self.session.make_callable(y, [x])

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Feeds once."""
        sizes, weights = ON_GPU if self.place.gpu else EMULATED
        (mebi,) = draw.choices(sizes, weights)
        first = draw.randrange(1 << 22)
        # Below 2^22 + 2^22, so that twice the number is exact, too.
        x = (np.arange(mebi << 18, dtype=np.int32) & ((1 << 22) - 1)) + first
        fed = x.astype(np.float32)
        expected = (2 * x + 1).astype(np.float32)
        tally.step()
        tally.verify(self.callable(fed), expected, f"a feed of {mebi} MiB from {first}")

    def close(self) -> None:
        """Closes the session."""
        self.session.close()
