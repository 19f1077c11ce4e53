# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random programs on the groups of several GPUs give the results of one stream per GPU."""

from functools import partial
from typing import Any

import tensorflow as tf

from multistream.testing import kit
from multistream.testing import program_results as programs
from multistream.testing.gpus import gpu, gpus, run, run_all, used
from multistream.testing.random_programs import Instruction

tf1 = tf.compat.v1


class FunctionState(programs.FunctionState):
    """Variables of a tf.function, one a GPU."""

    def __init__(self) -> None:
        self.variables = []
        for k in range(programs.VARIABLES):
            with tf.device(gpu(k)):
                self.variables.append(tf.Variable(programs.start_of(k)))

    def use(self, op: str, k: int, value: Any) -> Any:
        with tf.device(gpu(k % programs.VARIABLES)):
            return super().use(op, k, value)


class SessionState(programs.SessionState):
    """Variables of a session's graph, one a GPU."""

    def __init__(self, reference: bool) -> None:
        self.variables = []
        for k in range(programs.VARIABLES):
            with tf.device(gpu(k)):
                self.variables.append(
                    tf1.get_variable(
                        f"w{k}", initializer=programs.start_of(k), use_resource=not reference
                    )
                )
        self.last: list[list[Any]] = [[] for _ in range(programs.VARIABLES)]

    def use(self, op: str, k: int, value: Any) -> Any:
        with tf.device(gpu(k % programs.VARIABLES)):
            return super().use(op, k, value)


def random_programs(first: int, last: int, groups: int) -> None:
    """The programs of these seeds, on the first groups of all GPUs."""
    build_one, scope = programs.build_one, programs.on

    def build_one_on_gpu(
        instruction: Instruction, state: Any, inputs: list[Any], scoped: bool
    ) -> Any:
        with tf.device(gpu(instruction.k + instruction.inputs[0])):
            return build_one(instruction, state, inputs, scoped)

    def scope_of_few(group: int | None, scoped: bool = True, include_grad: bool = True) -> Any:
        return scope(None if group is None else group % groups, scoped, include_grad)

    programs.build_one, programs.on = build_one_on_gpu, scope_of_few
    programs.FunctionState, programs.SessionState = FunctionState, SessionState
    programs.groups_used = lambda: {group for _, group in used()}
    programs.GROUPS = groups
    programs.compare_programs(first, last)
    assert used() == {(i, j) for i in gpus() for j in range(groups)}


def test_random_programs() -> None:
    """Programs whose instructions are on two or three GPUs give the same bits with scopes."""
    count = 8 * kit.PROGRAMS
    run_all(
        [
            partial(run, random_programs, 300, 300 + count, 3, TF_GPU_STREAM_GROUP_COUNT="3"),
            partial(
                run,
                random_programs,
                10000,
                10000 + count,
                2,
                TF_MULTI_STREAM_EMULATED_GPUS="3",
                TF_GPU_STREAM_GROUP_COUNT="2",
                TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION="true",
            ),
        ]
    )
