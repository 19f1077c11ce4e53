# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""With TF_NODE_LEVEL_MULTISTREAM=true, branches on stream groups give what one stream gives.

A test names a function of this file, a job, which runs in a process of its own with the variables
that the test chooses. What a job builds without scopes all runs on group 0, the stock order: it is
the reference for the same thing with scopes.
"""

import concurrent.futures
import contextlib
import dataclasses
import inspect
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import cancellation
from tensorflow.python.multistream import loader

tf1 = tf.compat.v1
GPU = "/GPU:0"
GROUPS = 4
# On a machine with a GPU, TFMS_TEST_GPU=1 runs the same code on it.
ON_GPU = os.environ.get("TFMS_TEST_GPU") == "1"

# Variables of every job beside those that its test chooses.
EXTRA: dict[str, str] = {"TF_MULTI_STREAM_SANITIZER": "abort"}


def run_process(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Runs code in a process with node level and these multi-stream variables and no others.

    A variable that is None is not set.
    """
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith(("TF_", "PROTOCOL_BUFFERS_"))
    }
    ours = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_MULTI_STREAM_EMULATED_GPUS": "1",
        "TF_GPU_STREAM_GROUP_COUNT": str(GROUPS),
        "TF_NODE_LEVEL_MULTISTREAM": "true",
        **EXTRA,
    }
    given = {**inherited, **ours, **environment}
    if ON_GPU:
        given |= {
            "TF_MULTI_STREAM_EMULATED_GPUS": None,
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "TF_DETERMINISTIC_OPS": "1",  # or sums are other bits each time
        }
    return subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in given.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def run_job(
    job: Callable[..., None], *arguments: object, first: str = "", **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Runs a function of a test's file, which must succeed, in a process with stream groups.

    `first` is code that runs before it, where `jobs` is the file.
    """
    file = Path(inspect.getfile(job)).resolve()
    code = f"""
import faulthandler, sys
faulthandler.dump_traceback_later(500, exit=True)  # a hang says where
sys.path.insert(0, {str(file.parents[1])!r})
from multistream import {file.stem} as jobs
from multistream import node_level_test as base
{first}
jobs.{job.__name__}(*{arguments!r})
base.check_process()
"""
    done = run_process(code, **environment)
    # Grappler says this of each graph, as there is no CUDA behind an emulated GPU.
    errors = [x for x in done.stderr.splitlines() if "was not registered" not in x]
    assert done.returncode == 0, "\n".join(
        [f"rc {done.returncode}", done.stdout[-6000:], *errors[-60:]]
    )
    return done


def check_process() -> None:
    """What must hold at the end of each job."""
    assert all(s.steps_running == 0 for s in tf.cuda.stream_stats()), tf.cuda.stream_stats()
    for _ in range(200):  # streams let go once they have passed
        if not any(s.tensors_held for s in tf.cuda.stream_stats()):
            break
        time.sleep(0.05)
    else:
        raise AssertionError(f"held: {tf.cuda.stream_stats()}")
    assert loader.library.TFMS_EmulatedMemoryViolations() == 0


def groups_used() -> set[int]:
    """The groups whose memory this process has used."""
    return {s.group for s in tf.cuda.stream_stats() if s.peak_bytes_in_use > 0}


def on(group: int | None, scoped: bool = True, include_grad: bool = True) -> Any:
    """A scope of the group, or of the next one; nothing unless `scoped`."""
    if not scoped:
        return contextlib.nullcontext()
    stream = None if group is None else tf.cuda.get_stream(group)
    return tf.cuda.stream_scope(stream, include_grad)


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two lists of arrays agree bit for bit."""
    return len(left) == len(right) and all(
        np.shape(a) == np.shape(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(left, right, strict=True)
    )


def run_threads(functions: Sequence[Callable[[], None]]) -> None:
    """Runs each function in a thread of its own; none may raise."""
    errors: list[str] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, "\n".join(errors)


# Random programs. Every value is a [ROWS, COLUMNS] matrix of small numbers, so that every op may
# take every value.

ROWS, COLUMNS = 5, 7
VARIABLES = 2
CALLS = 3
SESSION_EVERY = 4  # one program in so many runs in a session
TAPE_EVERY = 10  # of one program in so many, eager code asks for gradients


def bounded(x: Any) -> Any:
    return tf.ensure_shape(tf.clip_by_value(x, -3.0, 3.0), [ROWS, COLUMNS])


def best_rows(a: Any) -> Any:
    """A row number for each row, computed from the values."""
    return tf.math.floormod(tf.cast(tf.argmax(a, 1), tf.int32), ROWS)


def weights(k: int) -> Any:
    return tf.constant(np.random.RandomState(k).randn(COLUMNS, COLUMNS).astype(np.float32) * 0.3)


def mask_rows(a: Any, b: Any) -> Any:
    rows = tf.boolean_mask(a, tf.reduce_sum(b, 1) > 0.0)
    return bounded(b + tf.reduce_sum(rows, 0))


def unique_rows(a: Any, b: Any) -> Any:
    values, index = tf.unique(best_rows(b))
    return tf.gather(tf.gather(a, values), index)


def through_text(a: Any) -> Any:
    text = tf.strings.as_string(a, precision=4)
    return tf.strings.to_number(tf.strings.join(["", text]))


def through_python(a: Any) -> Any:
    return tf.ensure_shape(
        tf.numpy_function(lambda x: np.tanh(x[::-1]), [a], tf.float32), [ROWS, COLUMNS]
    )


def by_host_numbers(a: Any) -> Any:
    shape = tf.shape(a)
    index = tf.math.floormod(tf.range(shape[0]) * 3 + 1, shape[0])
    return tf.gather(a, index)


# By row as well as by matrix.
ELEMENTWISE: dict[str, Callable[[Any, Any, int], Any]] = {
    "tanh": lambda a, b, k: tf.tanh(a),
    "sin": lambda a, b, k: tf.sin(a * float(k + 1)),
    "sigmoid": lambda a, b, k: tf.sigmoid(a),
    "relu": lambda a, b, k: tf.nn.relu(a) - 0.25,
    "scale": lambda a, b, k: a * (0.25 * k),
    "add": lambda a, b, k: tf.tanh(a + b),
    "sub": lambda a, b, k: tf.tanh(a - b),
    "mul": lambda a, b, k: tf.tanh(a * b),
    "max": lambda a, b, k: tf.maximum(a, b),
    "where": lambda a, b, k: tf.where(a > b, a, b * 0.5),
    "softmax": lambda a, b, k: tf.nn.softmax(a),
    "difference": lambda a, b, k: tf.clip_by_value(tf.math.squared_difference(a, b), -3.0, 3.0),
}

PLAIN: dict[str, Callable[[Any, Any, int], Any]] = {
    **ELEMENTWISE,
    "matmul": lambda a, b, k: bounded(tf.matmul(a, weights(k))),
    "outer": lambda a, b, k: bounded(tf.matmul(tf.matmul(a, b, transpose_b=True), b)),
    "reverse": lambda a, b, k: tf.reverse(a, [k % 2]),
    "roll": lambda a, b, k: tf.roll(a, k, 0),
    "cumsum": lambda a, b, k: bounded(tf.cumsum(a, k % 2)),
    "concat": lambda a, b, k: tf.concat([a, b], 0)[k : k + ROWS],
    "split": lambda a, b, k: tf.concat(tf.split(a, [2, 3, 2], 1)[::-1], 1),
    "mean": lambda a, b, k: a + tf.reduce_mean(b, k % 2, keepdims=True),
    "transpose": lambda a, b, k: tf.reshape(tf.transpose(a), [ROWS, COLUMNS]),
    "gather": lambda a, b, k: tf.gather(a, best_rows(b)),
    "segments": lambda a, b, k: bounded(tf.math.unsorted_segment_sum(a, best_rows(b), ROWS)),
    "mask": lambda a, b, k: mask_rows(a, b),
    "unique": lambda a, b, k: unique_rows(a, b),
    "text": lambda a, b, k: through_text(a),
    "python": lambda a, b, k: through_python(a),
    "numbers": lambda a, b, k: by_host_numbers(a),
    "random": lambda a, b, k: bounded(a + tf.random.stateless_normal([ROWS, COLUMNS], [k, 2])),
    "constant": lambda a, b, k: tf.fill([ROWS, COLUMNS], 0.5 * k) + a * 0.125,
}

NESTED = ("cond", "switch", "while", "while_until", "map", "array", "call")
STATE = ("read", "assign", "assign_add", "scatter")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One value of a program.

    Attributes:
      op: its name.
      inputs: numbers of earlier values.
      k: a small number, to each op what it makes of it.
      scopes: group (None: the next one) and include_grad, the outermost first.
      after: numbers of earlier values that control edges come from.
      bodies: programs of branches, loops and functions, whose first values are the inputs.
    """

    op: str
    inputs: tuple[int, ...]
    k: int
    scopes: tuple[tuple[int | None, bool], ...]
    after: tuple[int, ...]
    bodies: tuple["Program", ...] = ()


Program = tuple[Instruction, ...]


class Generator:
    """Makes a program from a seed.

    Args:
      seed: the same one gives the same program.
      session: whether it is for a session, where variables are used by the outermost program only.
    """

    def __init__(self, seed: int, session: bool) -> None:
        self._random = random.Random(seed)
        self._session = session
        self._scopes: tuple[tuple[int | None, bool], ...] = ()

    def program(self, inputs: int, size: int, depth: int = 0) -> Program:
        return tuple(self._instruction(inputs + i, depth) for i in range(size))

    def _instruction(self, values: int, depth: int) -> Instruction:
        r = self._random
        kinds = [tuple(PLAIN)] * 12
        if depth < 2:
            kinds += [NESTED] * (4 - depth)
        if depth == 0 or not self._session:
            kinds.append(STATE)
        if depth == 0:
            kinds.append(("grad",))
        op = r.choice(r.choice(kinds))
        # Recent values more often, for long chains as well as wide graphs.
        inputs = tuple(values - 1 - min(r.randrange(values), r.randrange(values)) for _ in range(2))
        if op == "grad":
            inputs = (inputs[0], r.randrange(inputs[0] + 1))
        k = r.randrange(1, 5)
        scopes = self._next_scopes()
        after = tuple({r.randrange(values) for _ in range(r.choice([0, 0, 0, 1, 2]))})
        count = {"cond": 2, "switch": 3}.get(op, 1 if op in NESTED else 0)
        if op in ("map", "array"):
            bodies = tuple(self._row_program(r.randrange(1, 4)) for _ in range(count))
        else:
            bodies = tuple(self.program(2, r.randrange(1, 5), depth + 1) for _ in range(count))
        return Instruction(op, inputs, k, scopes, after, bodies)

    def _row_program(self, size: int) -> Program:
        r = self._random
        return tuple(
            Instruction(
                r.choice(tuple(ELEMENTWISE)),
                (r.randrange(i + 1), r.randrange(i + 1)),
                r.randrange(1, 5),
                self._next_scopes(),
                (),
            )
            for i in range(size)
        )

    def _next_scopes(self) -> tuple[tuple[int | None, bool], ...]:
        r = self._random
        if r.random() < 0.6:
            depth = r.choice([0, 1, 1, 1, 2])
            self._scopes = tuple(
                (r.choice([0, 1, 2, 3, 1, 2, 3, None]), r.random() < 0.8) for _ in range(depth)
            )
        return self._scopes


def listing(program: Program, inputs: int, indent: str = "") -> str:
    """A program as text."""
    lines = []
    for i, instruction in enumerate(program):
        line = f"{indent}v{inputs + i} = {instruction.op}[{instruction.k}]"
        line += "(" + ", ".join(f"v{j}" for j in instruction.inputs) + ")"
        for group, include_grad in instruction.scopes:
            line += f" @{'next' if group is None else group}{'' if include_grad else '-nograd'}"
        if instruction.after:
            line += " after " + ", ".join(f"v{j}" for j in instruction.after)
        lines.append(line)
        lines += [
            listing(body, 1 if instruction.op in ("map", "array") else 2, indent + f"  {n}| ")
            for n, body in enumerate(instruction.bodies)
        ]
    return "\n".join(lines)


class FunctionState:
    """Variables of a tf.function, which orders their uses by itself."""

    def __init__(self) -> None:
        self.variables = [tf.Variable(start_of(k)) for k in range(VARIABLES)]

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
    """Variables of a session's graph, by reference or not, whose uses control edges order."""

    def __init__(self, reference: bool) -> None:
        self.variables = [
            tf1.get_variable(f"w{k}", initializer=start_of(k), use_resource=not reference)
            for k in range(VARIABLES)
        ]
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
            # The op that reads the memory, and not an alias of it, must come before a change.
            read = tf.multiply(variable, 0.75)
        last[:] = [read]
        return read


def start_of(k: int) -> Any:
    return np.random.RandomState(100 + k).randn(ROWS, COLUMNS).astype(np.float32) * 0.5


State = FunctionState | SessionState


def build(program: Program, state: State, values: list[Any], scoped: bool) -> list[Any]:
    """Builds a program's ops; gives all its values."""
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


def build_while(body: Body, a: Any, b: Any, k: int) -> Any:
    def step(i: Any, x: Any) -> Any:
        return i + 1, tf.ensure_shape(body(0, x, b), [ROWS, COLUMNS])

    start = [tf.constant(0), a]
    return tf.while_loop(lambda i, x: i < k, step, start, parallel_iterations=2 * k)[1]


def build_while_until(body: Body, a: Any, b: Any, k: int) -> Any:
    def step(i: Any, x: Any) -> Any:
        return i + 1, tf.ensure_shape(body(0, x, b), [ROWS, COLUMNS])

    def goes_on(i: Any, x: Any) -> Any:
        return tf.logical_and(i < k, tf.reduce_sum(x) < 4.0)

    return tf.while_loop(goes_on, step, [tf.constant(0), a])[1]


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
    "while_until": build_while_until,
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


def integers_of_a_call() -> None:
    """A function that is not inlined returns an integer, which TensorFlow takes for the host's."""

    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def inner(x: Any) -> Any:
        with tf.device(GPU):
            return x + 1, tf.cast(x, tf.float32)

    @tf.function(autograph=False)
    def outer(x: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                n, _ = inner(x)
            with on(2):
                return n * 3, tf.cast(n, tf.float32)

    for i in range(5):
        assert [x.numpy() for x in outer(tf.constant(i))] == [3 * (i + 1), i + 1.0]


@pytest.mark.parametrize("reduce_waits", ["true", "false"])
def test_integers_of_a_call_are_waited_for(reduce_waits: str) -> None:
    """In the group that reads them."""
    run_job(integers_of_a_call, TF_REDUCE_STREAM_WAIT=reduce_waits)


def random_programs(first: int, last: int) -> None:
    """Runs programs without scopes, then with them, and compares."""
    seeds = range(first, last)
    programs = {}
    for seed in seeds:
        generator = Generator(seed, session=seed % SESSION_EVERY == 0)
        programs[seed] = generator.program(2, 4 + seed % 9)

    def results(scoped: bool) -> dict[int, list[list[Any]]]:
        found = {}
        for seed, program in programs.items():
            run_it = results_of_function if seed % SESSION_EVERY else results_of_session
            try:
                found[seed] = list(run_it(seed, program, scoped))
            except Exception as error:
                what = f"seed {seed}, scoped={scoped}\n{listing(program, 2)}"
                raise AssertionError(what) from error
        return found

    expected = results(scoped=False)
    assert groups_used() == {0}
    found = results(scoped=True)
    assert groups_used() == set(range(GROUPS))
    different = [seed for seed in seeds if not all(map(same, expected[seed], found[seed]))]
    for seed in different:
        print(f"seed {seed} differs:\n{listing(programs[seed], 2)}")
        for call, (left, right) in enumerate(zip(expected[seed], found[seed], strict=True)):
            for i, (a, b) in enumerate(zip(left, right, strict=True)):
                if not same([a], [b]):
                    print(f"call {call}, result {i}:\n{a}\n{b}")
    assert not different, f"of {len(seeds)} programs, these differ: {different}"
    assert all(np.isfinite(x).all() for calls in expected.values() for c in calls for x in c)


@pytest.mark.parametrize("reduce_waits", ["true", "false"])
def test_random_programs(reduce_waits: str) -> None:
    """220 random programs give the same bits with scopes as without."""

    def run_part(part: int) -> None:
        run_job(
            random_programs,
            55 * part,
            55 * part + 55,
            TF_REDUCE_STREAM_WAIT=reduce_waits,
            TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION=str(part % 2 > 0),
        )

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(run_part, (0, 1) if reduce_waits == "true" else (2, 3)))


# Training.

STEPS = 200


def mlp_training(scoped: bool, adam: bool) -> list[Any]:
    """Losses and weights of four branches, trained by gradients and updates written out."""
    numbers = np.random.RandomState(1)
    with tf.device(GPU):
        first = [tf.Variable(numbers.randn(8, 16).astype(np.float32) * 0.3) for _ in range(4)]
        second = [tf.Variable(numbers.randn(16, 4).astype(np.float32) * 0.3) for _ in range(4)]
        last = tf.Variable(numbers.randn(16, 1).astype(np.float32) * 0.3)
        variables = [*first, *second, last]
        moments = [
            (tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in variables
        ]

    @tf.function
    def step(x: Any, y: Any, rate: Any) -> Any:
        with tf.device(GPU):
            with tf.GradientTape() as tape:
                branches = []
                for i in range(4):
                    with on(i, scoped):
                        h = tf.tanh(tf.matmul(x, first[i]))
                        branches.append(tf.nn.relu(tf.matmul(h, second[i])))
                out = tf.matmul(tf.concat(branches, 1), last)
                loss = tf.reduce_mean(tf.math.squared_difference(out, y))
            gradients = tape.gradient(loss, variables)
            for i, (v, g, (m, s)) in enumerate(zip(variables, gradients, moments, strict=True)):
                with on(i % 4, scoped):
                    if adam:
                        m.assign(0.9 * m + 0.1 * g)
                        s.assign(0.99 * s + 0.01 * g * g)
                        v.assign_sub(rate * m / (tf.sqrt(s) + 1e-5))
                    else:
                        v.assign_sub(rate * g)
            return loss

    losses = []
    for _ in range(STEPS):
        x = numbers.randn(8, 8).astype(np.float32)
        y = np.sin(x.sum(1, keepdims=True))
        losses.append(step(tf.constant(x), tf.constant(y), tf.constant(0.01)).numpy())
    assert losses[-1] < losses[0]
    return [*losses, *[v.numpy() for v in variables]]


class Branches(keras.Model):
    """A Keras model with three branches."""

    def __init__(self, scoped: bool) -> None:
        super().__init__()
        self.scoped = scoped
        self.branches = [keras.layers.Dense(12, activation="tanh") for _ in range(3)]
        self.norms = [keras.layers.BatchNormalization() for _ in range(3)]
        self.out = keras.layers.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        found = []
        for i, (branch, norm) in enumerate(zip(self.branches, self.norms, strict=True)):
            with on(i + 1, self.scoped):
                found.append(norm(branch(x), training=training))
        return self.out(tf.concat(found, 1))

    # Keras's own functions name no device, and an emulated GPU gets only what names it.
    def train_step(self, *arguments: Any) -> Any:
        with tf.device(GPU):
            return super().train_step(*arguments)

    def predict_step(self, *arguments: Any) -> Any:
        with tf.device(GPU):
            return super().predict_step(*arguments)


def keras_training(scoped: bool) -> list[Any]:
    """Losses, weights and predictions of a model trained with fit."""
    keras.utils.set_random_seed(3)
    x = np.random.RandomState(2).randn(160, 6).astype(np.float32)
    y = np.cos(x.sum(1, keepdims=True))
    with tf.device(GPU):
        model = Branches(scoped)
    # The data set that fit makes is for the CPU.
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
    history = model.fit(x, y, batch_size=16, epochs=STEPS // 10, verbose=0, shuffle=False)
    predicted = model.predict(x, batch_size=160, verbose=0)
    return [*history.history["loss"], *model.get_weights(), predicted]


def recommender_training(scoped: bool, reference: bool) -> list[Any]:
    """Losses and weights of embedding tables with sparse gradients, trained in a session."""
    fields, rows, width = 6, 50, 4
    numbers = np.random.RandomState(5)
    with tf.Graph().as_default() as graph, tf.device(GPU):
        ids = tf1.placeholder(tf.int32, [None, fields])
        label = tf1.placeholder(tf.float32, [None])
        towers = []
        for i in range(fields):
            with on(i % GROUPS, scoped):
                table = tf1.get_variable(
                    f"table{i}",
                    initializer=numbers.randn(rows, width).astype(np.float32) * 0.5,
                    use_resource=not reference,
                )
                towers.append(tf.tanh(tf.gather(table, ids[:, i])))
        dense = tf1.get_variable(
            "dense",
            initializer=numbers.randn(fields * width, 1).astype(np.float32) * 0.5,
            use_resource=not reference,
        )
        score = tf.matmul(tf.concat(towers, 1), dense)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, score))
        train = tf1.train.GradientDescentOptimizer(0.5).minimize(loss)
        variables = tf1.trainable_variables()
        initializer = tf1.global_variables_initializer()
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=graph, config=config) as session:
        session.run(initializer)
        losses = []
        for _ in range(STEPS):
            chosen = numbers.randint(0, rows, [16, fields])
            feeds = {ids: chosen, label: (chosen.sum(1) % 2).astype(np.float32)}
            losses.append(session.run([loss, train], feeds)[0])
        return [*losses, *session.run(variables)]


def training() -> None:
    """Each model without scopes, then each with them."""
    models: dict[str, Callable[[bool], list[Any]]] = {
        "keras": keras_training,
        "mlp, SGD": lambda scoped: mlp_training(scoped, adam=False),
        "mlp, Adam": lambda scoped: mlp_training(scoped, adam=True),
        "recommender": lambda scoped: recommender_training(scoped, reference=False),
        "recommender, reference variables": lambda scoped: recommender_training(scoped, True),
    }
    if ON_GPU:  # where the order of a reference variable's scattered updates is not determined
        del models["recommender, reference variables"]
    expected = {name: model(False) for name, model in models.items()}
    assert groups_used() == {0}
    found = {}
    for name, model in models.items():
        found[name] = model(True)
        assert groups_used() == set(range(GROUPS)), name
    for name, results in expected.items():
        assert all(np.isfinite(x).all() for x in results), name
        assert same(results, found[name]), name


def test_training_gives_the_same_weights() -> None:
    """200 steps of each model give the same losses and weights with scopes as without."""
    run_job(training)


def sums() -> None:
    """AddN of tensors of several groups, written by hand and made by gradients."""
    x = tf.constant(np.random.RandomState(0).randn(48, 192).astype(np.float32))
    w = tf.constant(np.random.RandomState(1).randn(192, 192).astype(np.float32))

    def summed(scoped: bool, order: Sequence[int], last: int) -> Any:
        @tf.function(autograph=False)
        def function() -> Any:
            with tf.device(GPU):
                parts = []
                for i, group in enumerate(order):
                    with on(group, scoped):
                        parts.append(tf.tanh(tf.roll(x, i, 1) * (i + 1.0)))
                with on(last, scoped):
                    return tf.add_n(parts)

        return function

    def differentiated(scoped: bool, order: Sequence[int], last: int) -> Any:
        @tf.function(autograph=False)
        def function() -> Any:
            with tf.device(GPU), tf.GradientTape() as tape:
                tape.watch(w)
                with on(last, scoped):
                    shared = tf.tanh(tf.matmul(x, w))
                parts = []
                for i, group in enumerate(order):
                    with on(group, scoped):
                        parts.append(tf.reduce_sum(tf.sin(shared * (i + 1.0))))
                loss = parts[0] + parts[1] + parts[2]
                return tape.gradient(loss, w)

        return function

    for make in (summed, differentiated):
        for order, last in (([0, 1, 2, 3], 0), ([1, 2, 3, 0], 0), ([1, 2, 3], 3), ([3, 2, 1], 0)):
            expected = make(False, order, last)().numpy()
            function = make(True, order, last)
            for _ in range(5):
                assert same(function().numpy(), expected), (make.__name__, order, last)
    assert groups_used() == set(range(GROUPS))


def test_sums_begin_where_they_do_without_scopes() -> None:
    """AddN takes the first input's memory that it may; which that is changes the last bits."""
    run_job(sums)


# Where nodes go.


def function_in_scopes() -> Any:
    """A tf.function of [64, 64] matrices with an op after the scope."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device(GPU):
            with tf.name_scope("inside"), on(1):
                y = tf.tanh(x, name="tanh")
            with tf.name_scope("outside"):
                return tf.reduce_sum(tf.concat([y, y], 0))

    return function


def matrix() -> Any:
    return np.random.RandomState(0).randn(64, 64).astype(np.float32)


def scopes_use(groups: set[int], peak: int) -> None:
    """Checks which groups a function uses, and for how many matrices group 1 has memory."""
    x = tf.constant(matrix())
    assert groups_used() <= {0}
    result = function_in_scopes()(x).numpy()
    assert groups_used() == {0} | groups, tf.cuda.stream_stats()
    matrices = tf.cuda.stream_stats()[1].peak_bytes_in_use / matrix().nbytes
    assert int(matrices + 0.5) == peak, tf.cuda.stream_stats()
    assert result == pytest.approx(np.tanh(matrix()).sum() * 2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("groups", "peak", "environment"),
    [
        ({1}, 1, {}),
        ({1}, 3, {"TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION": "true"}),
        (set(), 0, {"TF_NODE_LEVEL_MULTISTREAM": "false"}),
    ],
)
def test_scopes_say_where_nodes_run(
    groups: set[int], peak: int, environment: dict[str, str]
) -> None:
    """Ops of a scope run on its group, and what follows them too if the variable says so."""
    run_job(scopes_use, groups, peak, **environment)


def file_gives_groups() -> None:
    """A function and a session, whose node names the file knows."""
    x = matrix()

    def model(x: Any) -> Any:
        with tf.name_scope("left"):
            a = tf.tanh(x, name="tanh")
        with tf.name_scope("leftover"), on(1):
            b = tf.sin(x, name="sin")
        return tf.reduce_sum(a * b)

    def function(x: Any) -> Any:
        with tf.device(GPU):
            return model(x)

    assert groups_used() <= {0}
    result = tf.function(function)(tf.constant(x)).numpy()
    assert groups_used() == {0, 1, 2}, tf.cuda.stream_stats()
    before = [s.steps_started for s in tf.cuda.stream_stats()]
    with tf.Graph().as_default() as graph, tf.device(GPU):
        placeholder = tf1.placeholder(tf.float32, [64, 64])
        out = model(placeholder)
        with tf.name_scope("only_in_session"):
            big = tf.reduce_sum(tf.matmul(placeholder, placeholder, name="big"))
    with tf1.Session(graph=graph) as session:
        assert session.run(out, {placeholder: x}) == result
        assert groups_used() == {0, 1, 2}, tf.cuda.stream_stats()
        session.run(big, {placeholder: x})
    assert groups_used() == {0, 1, 2, 3}, tf.cuda.stream_stats()
    assert sum(s.steps_started for s in tf.cuda.stream_stats()) > sum(before)


def test_file_gives_groups_by_node_name(tmp_path: Path) -> None:
    """A regular expression counts for whole names, in functions and sessions."""
    path = tmp_path / "streams.txt"
    path.write_text("# towers\n2: left/.*\n3: lef, only_in_session/big\n", encoding="utf-8")
    log = run_job(file_gives_groups, TF_STREAM_FROM_FILE=str(path), TF_CPP_MIN_LOG_LEVEL="0").stderr
    assert log.count("Stream groups from a file:") == 1, log
    assert log.count(f"{path}:2 group 2 regex 'left/.*': ") == 1, log
    assert log.count(f"{path}:3 group 3 regex 'lef': 0 nodes\n") == 1, log
    assert log.count(f"{path}:3 group 3 regex 'only_in_session/big': 0 nodes\n") == 1, log


def file_gives_groups_to_a_pair() -> None:
    """One function with two nodes that the file knows."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device(GPU), tf.name_scope("pair"):
            return tf.reduce_sum(tf.matmul(tf.tanh(x, name="a"), x, name="b"))

    function.get_concrete_function(tf.constant(matrix()))(tf.constant(matrix()))


def test_log_counts_the_nodes_of_the_file(tmp_path: Path) -> None:
    """The log says how many nodes each regular expression gave to a group."""
    path = tmp_path / "streams.txt"
    path.write_text("2: pair/[ab]\n", encoding="utf-8")
    log = run_job(
        file_gives_groups_to_a_pair, TF_STREAM_FROM_FILE=str(path), TF_CPP_MIN_LOG_LEVEL="0"
    ).stderr
    assert f"{path}:2 group 2" not in log
    assert f"{path}:1 group 2 regex 'pair/[ab]': 2 nodes\n" in log, log


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1: a\n\n4: b\n", ':3: group "4" is not valid: it takes a whole number from 0 to 3'),
        ("1: a\nb\n", ':2: "b" has no colon'),
        ("1: a(\n", ':1: regex "a(" is not valid'),
    ],
)
def test_bad_line_of_the_file_is_an_error(tmp_path: Path, text: str, wanted: str) -> None:
    """The error names the file and the line."""
    path = tmp_path / "streams.txt"
    path.write_text(text, encoding="utf-8")
    done = run_process(
        "import tensorflow as tf; tf.constant(1.0); print('started')",
        TF_STREAM_FROM_FILE=str(path),
    )
    assert done.returncode == 1 and "started" not in done.stdout
    assert f"{path}{wanted}" in done.stderr, done.stderr


def test_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The error names the variable and the path."""
    path = tmp_path / "nothing.txt"
    done = run_process("import tensorflow as tf; tf.constant(1.0)", TF_STREAM_FROM_FILE=str(path))
    assert done.returncode == 1
    assert f'TF_STREAM_FROM_FILE="{path}" cannot be read' in done.stderr, done.stderr


def group_that_is_not_there() -> None:
    """A graph and a function from a process with more groups."""
    with tf.Graph().as_default() as graph, tf.device(GPU):
        x = tf1.placeholder(tf.float32, [3], name="x")
        tf.tanh(tf.sin(x, name="good"), name="bad")
    graph_def = graph.as_graph_def()
    for node in graph_def.node:
        if node.name in ("good", "bad"):
            node.attr["_stream_group"].i = 1 if node.name == "good" else 3

    wanted = r"Node \S*node bad\w*\S* \(Tanh\) is in stream group 3, and the GPU has 2 \("
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    with tf1.Session(graph=graph) as session:
        feeds = {"x:0": [1.0, 2.0, 3.0]}
        with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
            session.run("bad:0", feeds)
        expected = np.sin(np.array([1.0, 2.0, 3.0], np.float32))
        assert np.allclose(session.run("good:0", feeds), expected)
    function = tf1.wrap_function(
        lambda x: tf.import_graph_def(graph_def, {"x": x}, ["bad:0"], name="")[0],
        [tf.TensorSpec([3], tf.float32)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
        function(tf.constant([1.0, 2.0, 3.0]))


def test_group_that_is_not_there_is_an_error() -> None:
    """The error names the node, its group and the count."""
    run_job(group_that_is_not_there, TF_GPU_STREAM_GROUP_COUNT="2")


# What else a function may do in a scope.


def side_effects(folder: str) -> None:
    """Summaries, Python functions and printing."""
    inputs = [np.random.RandomState(i).randn(6, 5).astype(np.float32) for i in range(5)]
    seen: list[Any] = []

    def host(x: Any) -> Any:
        seen.append(np.array(x))
        return np.float32(2.0) * np.asarray(x)

    with tf.device(GPU):
        total = tf.Variable(tf.zeros([6, 5]))
    writer = tf.summary.create_file_writer(folder)
    text = f"{folder}/printed.txt"

    @tf.function
    def step(x: Any, i: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                a = tf.tanh(x)
                b = tf.numpy_function(host, [a], tf.float32)
                b = tf.ensure_shape(b, [6, 5])
            with on(2):
                c = tf.py_function(lambda x: tf.sin(x) + host(x), [a], tf.float32)
                c = tf.ensure_shape(c, [6, 5])
                with writer.as_default():
                    tf.summary.write("sum", tf.reduce_sum(b), step=i)
            with on(3):
                tf.print("sum of b:", tf.reduce_sum(b), output_stream=f"file://{text}")
                total.assign_add(b + c)
                tf.debugging.assert_less(tf.abs(b), 2.5)
            return b, c

    expected_total = np.zeros([6, 5], np.float32)
    sums = []
    for i, x in enumerate(inputs):
        b, c = step(tf.constant(x), tf.constant(i, tf.int64))
        tanh = tf.tanh(x).numpy()
        assert same([b.numpy()], [tanh * np.float32(2.0)])
        assert np.allclose(c.numpy(), np.sin(tanh) + 2.0 * tanh, atol=1e-6)
        expected_total += b.numpy() + c.numpy()
        sums.append(float(tf.reduce_sum(b)))
    assert np.allclose(total.numpy(), expected_total, atol=1e-5)
    assert len(seen) == 2 * len(inputs)
    writer.flush()
    events = [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for file in Path(folder).glob("events*")
        for event in tf1.train.summary_iterator(str(file))
        for value in event.summary.value
    ]
    assert [s for s, _ in events] == list(range(len(inputs)))
    assert np.allclose([v for _, v in events], sums, rtol=1e-5)
    printed = Path(text).read_text(encoding="utf-8").splitlines()
    assert np.allclose([float(line.split(":")[1]) for line in printed], sums, rtol=1e-4, atol=1e-5)


def data_in_a_loop() -> None:
    """A function that takes its inputs from a data set."""
    inputs = np.random.RandomState(0).randn(5, 6, 5).astype(np.float32)

    @tf.function
    def over_data(data: Any, scoped: bool) -> Any:
        with tf.device(GPU):
            found = tf.zeros([6, 5])
            for _ in tf.range(len(inputs)):
                with on(1, scoped):
                    a = tf.tanh(next(data))
                with on(None, scoped):
                    found += a * tf.sin(found + 1.0)
                if tf.reduce_sum(found) > 3.0:
                    with on(3, scoped):
                        found *= 0.5
            return found

    data = tf.data.Dataset.from_tensor_slices(inputs)
    assert same(*[[over_data(iter(data), scoped).numpy()] for scoped in (False, True)])


def checkpointing(folder: str) -> None:
    """Training that goes on from a checkpoint comes to where it came without."""

    def trained(scoped: bool) -> list[Any]:
        with tf.device(GPU):
            w = tf.Variable(np.random.RandomState(1).randn(2, 8, 8).astype(np.float32) * 0.3)
            steps = tf.Variable(0, dtype=tf.int64)

        @tf.function
        def step(x: Any) -> Any:
            with tf.device(GPU):
                with tf.GradientTape() as tape:
                    with on(1, scoped):
                        a = tf.tanh(tf.matmul(x, w[0]))
                    with on(2, scoped):
                        b = tf.sin(tf.matmul(x, w[1]))
                    loss = tf.reduce_mean(tf.math.squared_difference(a * b, x))
                w.assign_sub(0.1 * tape.gradient(loss, w))
                steps.assign_add(1)
                return loss

        inputs = [np.random.RandomState(i).randn(4, 8).astype(np.float32) for i in range(6)]
        checkpoint = tf.train.Checkpoint(w=w, steps=steps)
        for x in inputs:
            step(tf.constant(x))
        path = checkpoint.save(f"{folder}/{'scoped' if scoped else 'plain'}")
        ends = []
        for again in (False, True):
            if again:
                checkpoint.restore(path).assert_consumed()
            losses = [step(tf.constant(x)).numpy() for x in inputs]
            assert steps.numpy() == 2 * len(inputs)
            ends.append([*losses, w.numpy()])
        assert same(*ends)
        return ends[0]

    assert same(trained(False), trained(True))


def raises(kind: type[Exception], function: Callable[[], Any]) -> None:
    """Checks that a call raises."""
    with pytest.raises(kind):
        function()


def failing_branches() -> None:
    """Errors in branches come out, and the next call works."""

    @tf.function
    def step(x: Any, index: Any, limit: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                a = tf.gather(tf.tanh(x), index)
            with on(2):
                checked = tf.debugging.assert_less(tf.reduce_max(x), limit)
            with on(2), tf.control_dependencies([checked]):
                b = tf.sin(x)
            with on(3):
                c = tf.debugging.check_numerics(tf.cos(x), "not a number")
                for _ in tf.range(3):
                    c = c * 0.5 + tf.reduce_sum(a)
            return tf.reduce_sum(a) + tf.reduce_sum(b * c)

    x = matrix()
    bad = x.copy()
    bad[3, 3] = np.nan

    def call(x: Any, index: int, limit: float) -> Any:
        return step(tf.constant(x), tf.constant([0, index]), tf.constant(limit)).numpy()

    expected = call(x, 5, 100.0)
    for _ in range(20):
        if not ON_GPU:  # which gathers zeros
            raises(tf.errors.InvalidArgumentError, lambda: call(x, 64, 100.0))
        assert call(x, 5, 100.0) == expected
        raises(tf.errors.InvalidArgumentError, lambda: call(x, 5, 0.0))
        raises(tf.errors.InvalidArgumentError, lambda: call(bad, 5, 100.0))
        assert call(x, 5, 100.0) == expected
    assert sum(s.steps_failed for s in tf.cuda.stream_stats()) == (40 if ON_GPU else 60)


def cancelled_calls() -> None:
    """A function that is cancelled and a session's run that is too late leave all in order."""

    @tf.function
    def long(x: Any, count: Any) -> Any:
        with tf.device(GPU):
            i = tf.constant(0, tf.int64)
            while i < count:
                with on(1):
                    a = tf.tanh(x)
                with on(2):
                    x = a * tf.sin(x)
                i += 1
            return x

    x = tf.constant(matrix())
    short = tf.constant(3, tf.int64)
    endless = tf.constant(1 << 60, tf.int64)
    expected = long(x, short).numpy()
    concrete = long.get_concrete_function(x, endless)
    for _ in range(3):
        manager = cancellation.CancellationManager()
        cancelable = manager.get_cancelable_function(concrete)
        thread = threading.Timer(0.2, manager.start_cancel)
        thread.start()
        raises(tf.errors.CancelledError, partial(cancelable, x, endless))
        thread.join()
        assert same([long(x, short).numpy()], [expected])

    with tf.Graph().as_default() as graph, tf.device(GPU):
        count = tf1.placeholder(tf.int64, [])

        def body(i: Any, x: Any) -> Any:
            with on(1):
                a = tf.tanh(x)
            with on(2):
                return i + 1, a * tf.sin(x)

        start = [tf.constant(0, tf.int64), tf.constant(matrix())]
        out = tf.while_loop(lambda i, x: i < count, body, start)[1]
    with tf1.Session(graph=graph) as session:
        options = tf1.RunOptions(timeout_in_ms=200)
        for _ in range(3):
            raises(
                tf.errors.DeadlineExceededError,
                partial(session.run, out, {count: 1 << 60}, options=options),
            )
            deadline = time.monotonic() + 30
            while any(s.steps_running for s in tf.cuda.stream_stats()):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert same([session.run(out, {count: 3})], [expected])


def side_effects_and_errors(folder: str) -> None:
    """All of these, in one process."""
    side_effects(f"{folder}/side_effects")
    data_in_a_loop()
    checkpointing(folder)
    failing_branches()
    cancelled_calls()
    assert groups_used() == set(range(GROUPS))


@pytest.mark.parametrize("propagate", ["false", "true"])
def test_side_effects_checkpoints_and_errors(tmp_path: Path, propagate: str) -> None:
    """What a function does beside its results works in scopes; errors are Python's exceptions."""
    run_job(
        side_effects_and_errors,
        str(tmp_path),
        TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION=propagate,
    )


# Threads.


def clients_of_functions() -> list[Callable[[], None]]:
    """Threads that compare the results of two functions and a session with those of one thread."""
    with tf.device(GPU):
        w = tf.Variable(tf.random.stateless_normal([64, 64], [1, 2]) * 0.1)

    @tf.function
    def towers(x: Any) -> Any:
        with tf.device(GPU):
            found = []
            for i in range(6):
                with on(i % GROUPS):
                    y = tf.tanh(tf.matmul(x, w) + float(i))
                    for _ in tf.range(2):
                        y = tf.nn.relu(tf.matmul(y, w)) - y
                    found.append(tf.reduce_sum(y, 1))
            return tf.add_n(found)

    @tf.function
    def gradients(x: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                y = tf.tanh(tf.matmul(x, w))
            with on(2):
                z = tf.sin(tf.matmul(x, w))
            return tf.gradients(tf.reduce_sum(y * z), x)[0]

    with tf.Graph().as_default() as graph, tf.device(GPU):
        placeholder = tf1.placeholder(tf.float32, [None, 64])
        with on(1):
            left = tf.tanh(placeholder)
        with on(3):
            right = tf.nn.softmax(placeholder)
        fetch = tf.matmul(left, right, transpose_b=True)
    session = tf1.Session(graph=graph)

    inputs = [np.random.RandomState(i).randn(8 + i, 64).astype(np.float32) for i in range(5)]
    calls: list[Callable[[Any], Any]] = [
        lambda x: towers(tf.constant(x)).numpy(),
        lambda x: gradients(tf.constant(x)).numpy(),
        lambda x: session.run(fetch, {placeholder: x}),
    ]
    expected = [[call(x) for x in inputs] for call in calls]

    def client(k: int) -> None:
        for i in range(60):
            which, j = (k + i) % len(calls), (k * 3 + i) % len(inputs)
            assert same([calls[which](inputs[j])], [expected[which][j]]), (which, j)

    return [partial(client, k) for k in range(4)]


def threads() -> None:
    """Functions and sessions with scopes in several threads, with variables that change."""
    with tf.device(GPU):
        v = tf.Variable(tf.zeros([1024]))
        table = tf.Variable(tf.zeros([64, 16]))

    @tf.function
    def read(x: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                once = -v.read_value()
            with on(2):
                rows = tf.gather(table, tf.range(0, 64, 3)) * x
            with on(3):
                spread = tf.reduce_max(once) - tf.reduce_min(once)
            with on(None):
                rows = tf.reduce_max(rows) - tf.reduce_min(rows)
            return tf.stack([spread, rows])

    @tf.function
    def change(x: Any) -> None:
        with tf.device(GPU):
            with on(2):
                v.assign_add(tf.fill([1024], x))
            with on(3):
                table.assign(tf.fill([64, 16], x))

    def reader() -> None:
        for _ in range(100):
            assert not read(tf.constant(0.5)).numpy().any()

    def writer() -> None:
        for i in range(100):
            change(tf.constant(float(i)))
            if i % 5 == 0:
                v.assign(tf.fill([1024], 2.0))

    run_threads([*clients_of_functions(), reader, reader, writer])
    assert len(set(v.numpy())) == 1 and (table.numpy() == 99.0).all()
    assert groups_used() == set(range(GROUPS))


def test_threads() -> None:
    """Each result is that of a call by itself, or of a variable before or after a change."""
    run_job(threads)
