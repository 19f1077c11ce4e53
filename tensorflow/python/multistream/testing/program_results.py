# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Results of random programs, as functions and in sessions, without scopes and with them."""

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from pprint import pformat
from typing import Any

import numpy as np
import tensorflow as tf

from multistream.testing.kit import GPU, GROUPS, groups_used, on, same
from multistream.testing.random_programs import (
    COLUMNS,
    PLAIN,
    ROWS,
    SESSION_EVERY,
    STATE,
    Generator,
    Instruction,
    Program,
    bounded,
)

tf1 = tf.compat.v1

VARIABLES = 2
CALLS = 3
TAPE_EVERY = 10  # eager code computes gradients of one program in ten


def device_of(k: int) -> Any:
    """The device of variable `k`; tests of several GPUs replace this function."""
    return GPU


class FunctionState:
    """Variables of a tf.function, which orders the uses of each variable by itself."""

    def __init__(self) -> None:
        self.variables = []
        for k in range(VARIABLES):
            with tf.device(device_of(k)):
                self.variables.append(tf.Variable(start_of(k)))

    def use(self, op: str, k: int, value: Any) -> Any:
        variable = self.variables[k % VARIABLES]
        if op == "assign":
            variable.assign(value)
        elif op == "assign_add":
            variable.assign_add(value * 0.125)
        elif op == "scatter":
            variable.scatter_nd_update([[k % ROWS], [(k + 1) % ROWS]], value[:2])
        return variable.read_value() * 0.75


class SessionState:
    """Variables of a session's graph, reference or resource; control edges order their uses."""

    def __init__(self, reference: bool) -> None:
        self.variables = []
        for k in range(VARIABLES):
            with tf.device(device_of(k)):
                start = start_of(k)
                variable = tf1.get_variable(f"w{k}", initializer=start, use_resource=not reference)
            self.variables.append(variable)
        self.last: list[list[Any]] = [[] for _ in range(VARIABLES)]

    def use(self, op: str, k: int, value: Any) -> Any:
        variable = self.variables[k % VARIABLES]
        last = self.last[k % VARIABLES]
        with tf.control_dependencies(last):
            if op == "assign":
                last[:] = [tf1.assign(variable, value).op]
            elif op == "assign_add":
                last[:] = [tf1.assign_add(variable, value * 0.125).op]
            elif op == "scatter":
                rows = tf.constant([[k % ROWS], [(k + 1) % ROWS]])
                last[:] = [tf1.scatter_nd_update(variable, rows, value[:2])]
        with tf.control_dependencies(last):
            # A later change must wait for the op that reads the memory, not for an alias of it.
            read = tf.multiply(variable, 0.75)
        last[:] = [read]
        return read


def start_of(k: int) -> Any:
    return np.random.RandomState(100 + k).randn(ROWS, COLUMNS).astype(np.float32) * 0.5


State = FunctionState | SessionState


def build(program: Program, state: State, values: list[Any], scoped: bool) -> list[Any]:
    """Builds a program's ops; returns all values of the program."""
    for instruction in program:
        with contextlib.ExitStack() as stack:
            for group, include_grad in instruction.scopes:
                stack.enter_context(on(group, scoped, include_grad))
            if instruction.after:
                edges = [values[i] for i in instruction.after]
                stack.enter_context(tf.control_dependencies(edges))
            inputs = [values[i] for i in instruction.inputs]
            values.append(build_one(instruction, state, inputs, scoped))
    return values


def build_one(instruction: Instruction, state: State, inputs: list[Any], scoped: bool) -> Any:
    op, k, (a, b) = instruction.op, instruction.k, inputs

    def body(n: int, *arguments: Any) -> Any:
        return build(instruction.bodies[n], state, list(arguments), scoped)[-1]

    if op in PLAIN:
        return PLAIN[op](a, b, k)
    if op in STATE:
        with tf.device(device_of(k % VARIABLES)):
            return state.use(op, k, a)
    return NESTED_BUILDERS[op](body, a, b, k)


Body = Callable[..., Any]


def build_grad(body: Body, a: Any, b: Any, k: int) -> Any:
    gradient = tf.gradients(tf.reduce_sum(a * float(k)), b)[0]
    return tf.zeros_like(b) if gradient is None else bounded(tf.convert_to_tensor(gradient))


def build_cond(body: Body, a: Any, b: Any, k: int) -> Any:
    return tf.cond(tf.reduce_sum(a) > k - 2.0, lambda: body(0, a, b), lambda: body(1, a, b))


def build_switch(body: Body, a: Any, b: Any, k: int) -> Any:
    branches = [lambda n=n: body(n, a, b) for n in range(3)]
    return tf.switch_case(tf.math.floormod(tf.cast(tf.reduce_sum(a), tf.int32), 3), branches)


def build_while(body: Body, a: Any, b: Any, k: int, until: bool = False) -> Any:
    def step(i: Any, x: Any) -> Any:
        return i + 1, tf.ensure_shape(body(0, x, b), [ROWS, COLUMNS])

    def goes_on(i: Any, x: Any) -> Any:
        return (i < k) & (tf.reduce_sum(x) < 4.0) if until else i < k

    return tf.while_loop(goes_on, step, [0, a], parallel_iterations=10 if until else 2 * k)[1]


def build_map(body: Body, a: Any, b: Any, k: int) -> Any:
    return tf.ensure_shape(tf.map_fn(lambda row: body(0, row), a), [ROWS, COLUMNS])


def build_array(body: Body, a: Any, b: Any, k: int) -> Any:
    array = tf.TensorArray(tf.float32, ROWS, element_shape=[COLUMNS])

    def step(i: Any, array: Any) -> Any:
        return i + 1, array.write(i, body(0, a[i]))

    array = tf.while_loop(lambda i, array: i < ROWS, step, [tf.constant(0), array])[1]
    return tf.ensure_shape(array.stack(), [ROWS, COLUMNS])


def build_call(body: Body, a: Any, b: Any, k: int) -> Any:
    attributes = {"_noinline": True} if k % 2 else None
    function = tf.function(
        lambda a, b: body(0, a, b), autograph=False, experimental_attributes=attributes
    )
    once = function(a, b)
    return once if k < 3 else function(b, once)


NESTED_BUILDERS: dict[str, Callable[[Body, Any, Any, int], Any]] = {
    "grad": build_grad,
    "cond": build_cond,
    "switch": build_switch,
    "while": build_while,
    "while_until": functools.partial(build_while, until=True),
    "map": build_map,
    "array": build_array,
    "call": build_call,
}


def inputs_of(seed: int, call: int) -> list[Any]:
    numbers = np.random.RandomState(1000 * seed + call)
    return [numbers.randn(ROWS, COLUMNS).astype(np.float32) * 0.7 for _ in range(2)]


def outputs_of(values: list[Any]) -> list[Any]:
    """Some of the values: what is neither used nor returned is not computed."""
    return values[-1:] + values[2::3]


def results_of_function(seed: int, program: Program, scoped: bool) -> Iterator[list[Any]]:
    """Outputs and variables of each call of a program as a tf.function."""
    with tf.device(GPU):
        state = FunctionState()

    @tf.function(autograph=False)
    def function(a: Any, b: Any) -> Any:
        with tf.device(GPU):
            return outputs_of(build(program, state, [a, b], scoped))

    for call in range(CALLS):
        inputs = [tf.constant(x) for x in inputs_of(seed, call)]
        gradients: list[Any] = []
        if seed % TAPE_EVERY == 1:
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = function(*inputs)
            gradients = tape.gradient(outputs, inputs, unconnected_gradients="zero")
        else:
            outputs = function(*inputs)
        results = [*outputs, *gradients, *state.variables]
        yield [tf.convert_to_tensor(x).numpy() for x in results]


def results_of_session(seed: int, program: Program, scoped: bool) -> Iterator[list[Any]]:
    """Outputs and variables of each run of a program in a session."""
    old_control_flow = seed % (2 * SESSION_EVERY) < SESSION_EVERY
    if old_control_flow:
        tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph, tf.device(GPU):
            placeholders = [tf1.placeholder(tf.float32, [ROWS, COLUMNS]) for _ in range(2)]
            state = SessionState(reference=seed % 3 != 0)
            outputs = outputs_of(build(program, state, list(placeholders), scoped))
            changes = [last for last in state.last if last]
            initializer = tf1.global_variables_initializer()
    finally:
        tf1.enable_control_flow_v2()
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=graph, config=config) as session:
        session.run(initializer)
        for call in range(CALLS):
            feeds = dict(zip(placeholders, inputs_of(seed, call), strict=True))
            found = session.run([outputs, changes], feeds)[0]
            yield [*found, *session.run(state.variables)]


def program_of(seed: int) -> Program:
    """The program of a seed, for a session or a function."""
    generator = Generator(seed, session=seed % SESSION_EVERY == 0)
    return generator.program(2, 4 + seed % 9)


def results(seed: int, program: Program, scoped: bool) -> list[list[Any]]:
    """Outputs and variables of each call of a program; an error has the program's text."""
    run_it = results_of_function if seed % SESSION_EVERY else results_of_session
    try:
        return list(run_it(seed, program, scoped))
    except Exception as error:
        raise AssertionError(f"seed {seed}, scoped={scoped}:\n{pformat(program)}") from error


def save_results(path: str, seeds: range, scoped: bool = False, calls: int = CALLS) -> None:
    """Writes the results of the seeds' programs, and the groups' statistics, to a file."""
    global CALLS
    CALLS = calls
    found = {seed: results(seed, program_of(seed), scoped) for seed in seeds}
    Path(path).write_bytes(pickle.dumps((found, tf.cuda.stream_stats())))


def differing(expected: dict[int, list[list[Any]]], found: dict[int, list[list[Any]]]) -> list[int]:
    """The seeds whose results differ."""
    return [seed for seed in expected if not all(map(same, expected[seed], found[seed]))]


def compare_programs(first: int, last: int) -> None:
    """Runs programs without scopes, then with them, and compares."""
    programs = {seed: program_of(seed) for seed in range(first, last)}
    expected = {seed: results(seed, program, False) for seed, program in programs.items()}
    assert groups_used() == {0}
    found = {seed: results(seed, program, True) for seed, program in programs.items()}
    assert groups_used() == set(range(GROUPS))
    different = differing(expected, found)
    for seed in different:
        print(f"seed {seed} differs:\n{pformat(programs[seed])}")
        for call, (left, right) in enumerate(zip(expected[seed], found[seed], strict=True)):
            print(f"call {call}:\n{left}\n{right}")
    assert not different, f"of {len(programs)} programs, these differ: {different}"
    assert all(np.isfinite(x).all() for calls in expected.values() for c in calls for x in c)
