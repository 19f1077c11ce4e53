# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The workloads: which models, in which sizes, with which inputs. Needs NumPy only."""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import models

# Inputs that clients take in turn, so that a result left over from another query is a wrong one.
INPUTS = 8
# Of the largest number of the expected result: how far off other kernels may be, which add in
# another order, and which multiply with the 10 bits of TensorFloat-32.
TOLERANCE = 0.02
SIZES = ("small", "full")
# Of the sizes of a workload, those that models find in their inputs.
OF_INPUTS = ("tokens", "times", "image", "colours")


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model that is served or trained."""

    name: str  # in command lines and results
    title: str  # what it is, in a few words
    sizes: Mapping[str, Mapping[str, int]]  # of `small` and `full`, the arguments of `model`
    batches: tuple[int, ...]  # rows of a query; the first one is used where one is enough
    shape: tuple[str, ...]  # names of sizes that follow the batch in the shape of an input
    # What it computes, see models.py; None for a function of convolutions.py.
    model: Callable[..., Any] | None = None
    below: str = ""  # name of the size that ids are below; empty if the inputs are float32
    convolutions: str = ""  # name of that function; these models are TensorFlow's alone
    training: bool = False  # whether a query is a step of gradient descent, and its result the loss
    # Whether TensorFlow's own kernels give the same bits in each process: cuDNN's algorithms are
    # chosen by time.
    same_bits: bool = True

    def compute(self, size: str) -> Callable[[Any, models.Weights, Any], Any]:
        """The model of a size: a function of operations, weights and an input."""
        model = self.model
        if model is None:
            module = importlib.import_module(f"{__package__}.convolutions")
            model = getattr(module, self.convolutions)
        sizes = self.sizes[size].items()
        return functools.partial(model, **{k: v for k, v in sizes if k not in OF_INPUTS})

    def inputs(self, size: str, batch: int) -> list[np.ndarray]:
        """Draws `INPUTS` arrays [batch, ...] of int64 ids or float32."""
        sizes = self.sizes[size]
        random = np.random.default_rng([models.SEED, batch])
        shape = (batch, *(sizes[name] for name in self.shape))
        if not self.below:
            return [random.standard_normal(shape, np.float32) for _ in range(INPUTS)]
        if not self.training:
            return [random.integers(0, sizes[self.below], shape) for _ in range(INPUTS)]
        # No id twice in a column: the order in which gradients of a row are added is not fixed.
        columns = range(shape[1])
        return [
            np.stack([random.permutation(sizes[self.below])[:batch] for _ in columns], 1)
            for _ in range(INPUTS)
        ]


def _sizes(names: str, small: Sequence[int], full: Sequence[int]) -> dict[str, dict[str, int]]:
    return {
        size: dict(zip(names.split(), numbers, strict=True))
        for size, numbers in zip(SIZES, (small, full), strict=True)
    }


def _images(name: str, title: str, blocks: str, training: bool, full: int) -> Workload:
    return Workload(
        name,
        title,
        _sizes(f"image colours channels {blocks}", (8, 3, 4, 1), (32, 3, 32, full)),
        batches=(32,) if training else (1,),
        shape=("image", "image", "colours"),
        convolutions=name.removesuffix("_training"),
        training=training,
        same_bits=False,
    )


def _towers(towers: int) -> Workload:
    return Workload(
        f"wide_and_deep_{towers}",
        f"training of a wide part and {towers} deep towers, batch 128",
        _sizes("towers rows width layers", (towers, 200, 4, 2), (towers, 100_000, 64, 12)),
        batches=(128,),
        model=models.wide_and_deep,
        shape=("towers",),
        below="rows",
        training=True,
    )


def _transformer(name: str, title: str, batches: tuple[int, ...], full: Sequence[int]) -> Workload:
    names = "layers words width heads outputs tokens"
    return Workload(
        name,
        title,
        _sizes(names, (1, 50, 8, 2, 2, 4), full),
        batches=batches,
        model=models.transformer,
        shape=("tokens",),
        below="words",
    )


_ALL = (
    Workload(
        "recommender",
        "24 lookups, their products, 3 dense layers: about 300 small kernels; batch 16",
        _sizes("features rows width hidden", (4, 50, 4, 8), (24, 100, 8, 32)),
        batches=(16,),
        model=models.recommender,
        shape=("features",),
        below="rows",
    ),
    Workload(
        "dlrm",
        "26 tables of 100,000 rows, the products of all pairs, 3 dense layers; batch 64",
        _sizes("features rows width hidden", (4, 50, 4, 8), (26, 100_000, 64, 256)),
        batches=(64,),
        model=models.dlrm,
        shape=("features",),
        below="rows",
    ),
    _transformer(
        "bert",
        "BERT-like: 4 layers of width 256, 64 tokens; batch 1 and 8",
        (1, 8),
        (4, 1000, 256, 4, 2, 64),
    ),
    Workload(
        "lstm",
        "an LSTM of width 128, 32 times, in a loop; batch 8",
        _sizes("inputs width outputs times", (3, 4, 2, 3), (64, 128, 10, 32)),
        batches=(8,),
        model=models.lstm,
        shape=("times", "inputs"),
    ),
    Workload(
        "mlp",
        "two dense layers, batch 16: bound by Python",
        _sizes("inputs hidden outputs", (4, 8, 2), (64, 128, 10)),
        batches=(16,),
        model=models.mlp,
        shape=("inputs",),
    ),
    _images("inception", "Inception-like: 4 blocks of four branches; 1 image", "blocks", False, 4),
    _images("nasnet", "NASNet-like: 4 cells of five pairs; 1 image", "cells", False, 4),
    _transformer(
        "transformer",
        "a Transformer block of width 2048, 512 tokens, batch 4: fills the GPU, should not gain",
        (4,),
        (1, 1000, 2048, 16, 16, 512),
    ),
    _towers(4),
    _towers(8),
    Workload(
        "branches",
        "training of 4 branches of 24 dense layers, batch 32",
        _sizes("branches width layers", (4, 4, 2), (4, 64, 24)),
        batches=(32,),
        model=models.sum_of_branches,
        shape=("width",),
        training=True,
    ),
    _images("nasnet_training", "training of the NASNet-like model, batch 32", "cells", True, 4),
)
WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}
