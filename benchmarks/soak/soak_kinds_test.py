# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each kind of work that compares finds nothing wrong, and finds a bit that differs."""

import pathlib

import pytest
from multistream.testing import kit

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAM = """
import random, sys, tempfile
import numpy as np
import tensorflow as tf
from models import Place
from one_round import WORKS
from tally import Tally

KINDS = {kinds}

def steps(work, spoil=np.asarray):
    tally = Tally(spoil=spoil)
    draw = random.Random(1)
    for i in range(6):
        work.step(i % 3, draw, tally)
    work.close()
    counts = tally.snapshot()
    assert counts.results and not counts.unexpected, counts
    return counts

def with_other_bits(values):
    changed = {{}}
    for name, value in values.items():
        changed[name] = np.array(value)
        numbers = changed[name].reshape(-1)
        numbers[...] = np.where(numbers == 0, 1, -numbers)
    return changed

def lose_an_update(work):
    with tf.device("/GPU:0"):
        count = work.together.callables.variables.count
        count.assign_sub(tf.ones(count.shape))

for kind in KINDS:
    place = Place(False, 2, False, "", 1, tempfile.mkdtemp())
    right = WORKS[kind](place, {{}}).results()
    work = WORKS[kind](place, right)
    work.results()
    counts = steps(work)
    assert not counts.wrong, (kind, counts)
    if kind == "eager_ops":
        counts = steps(work, spoil=lambda found: -found - 1)
    elif kind == "captured_training":
        lose_an_update(work)
        counts = steps(work)
    else:
        work.reference = with_other_bits(right)
        work.own = with_other_bits(getattr(work, "own", {{}}))
        counts = steps(work)
    assert counts.wrong, (kind, counts)
    print(kind, counts.examples[0], flush=True)
"""
KINDS = (
    ("eager_ops", "compiled", "evictions", "models_come_and_go", "strings", "nested_calls"),
    ("recurrent", "mixed_precision", "prefetched", "keras_fit", "captured_training"),
)


@pytest.mark.parametrize("kinds", KINDS)
def test_kinds_find_a_bit_that_differs(kinds: tuple[str, ...]) -> None:
    done = kit.run_program(
        ["-c", PROGRAM.format(kinds=kinds)],
        FOLDER,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
        TF_GPU_STREAM_GROUP_COUNT="2",
        TF_MULTI_STREAM_CAPTURE="auto",
        TF_DETERMINISTIC_OPS="1",
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(kinds)
