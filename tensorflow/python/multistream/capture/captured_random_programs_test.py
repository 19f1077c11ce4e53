# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random steps that read and change variables have the same bits captured, uncaptured and served.

The statements of a step run in the order in which they were drawn, as tf.function keeps the uses
of one variable in order. Between steps the program assigns, reads, and keeps the values it read.
"""

import pytest

from multistream.testing import kit

CODE = """
import random

ROWS, WIDTH, VARIABLES = 6, 4, 4
if ON_GPU:
    tf.config.experimental.enable_op_determinism()  # steps that scatter are then not captured
SERVED = [False] if tf.__version__.startswith("2.13.") else [False, True]
replays = 0

def drawn(rng):
    return rng.normal(0, 0.5, (ROWS, WIDTH)).astype(np.float32)

def draw(seed):
    # A step as a list of statements, each a name and numbers.
    r = random.Random(seed)
    # Not all kinds in one: some keep a step from being captured, or are often in others' way.
    kinds = r.sample(["read", "assign", "add", "sub", "from", "result", "product", "sum", "keep",
                      "loop", "rows"], 6)
    if r.random() < 0.1:
        kinds.append("branch")
    def statement(depth):
        kind = r.choice(kinds if depth == 0 else ["add", "read", "sub"])
        inside = []
        if kind in ("loop", "branch"):
            inside = [statement(1) for _ in range(r.randint(1, 3))]
        return kind, r.randrange(VARIABLES), r.randrange(VARIABLES), r.randint(1, 3), inside
    return [statement(0) for _ in range(r.randint(3, 12))]

class Step:
    # The variables and the function of a program.
    def __init__(self, statements, mode, served, rng):
        with tf.device(GPU):
            self.variables = [tf.Variable(drawn(rng)) for _ in range(VARIABLES)]
        self.statements = statements

        @tf.function(autograph=False)
        def step(x):
            with tf.device(GPU):
                x = tf.identity(x)
                results, state = [], x
                for statement in self.statements:
                    state = self.run(statement, state, x, results)
                return [tf.identity(r) for r in results] + [state * 1.0]
        self.step = tf.cuda.captured(mode=mode)(step)
        if served:
            self.step = tf.cuda.serving_callable(self.step, tf.TensorSpec([ROWS, WIDTH]))

    def run(self, statement, state, x, results):
        kind, i, j, n, inside = statement
        v, u = self.variables[i], self.variables[j]
        if kind == "read":
            return tf.tanh(v + 0.5 * state)
        if kind == "assign":
            v.assign(tf.tanh(state + u))
        elif kind == "add":
            v.assign_add(0.1 * state)
        elif kind == "sub":
            v.assign_sub(0.1 * tf.tanh(u) * x)
        elif kind == "from":
            v.assign(u)  # the same memory, until one of them is changed
        elif kind == "result":
            results.append(v.read_value())
        elif kind == "product":
            return tf.tanh(state @ tf.matmul(v, u, transpose_a=True))
        elif kind == "sum":
            results.append(tf.reduce_sum(v) + tf.reduce_sum(state))
        elif kind == "keep":
            old = v.read_value()
            v.assign_add(0.1 * x)
            return tf.tanh(old - v)
        elif kind == "rows":
            ids = tf.constant([i, j + 1], tf.int64)
            v.scatter_sub(tf.IndexedSlices(0.1 * tf.gather(u, ids) + x[:2], ids))
        elif kind == "loop":
            def body(k, y):
                for one in inside:
                    y = self.run(one, y, x, [])
                return k + 1, y
            return tf.while_loop(lambda k, y: k < n, body, (0, state), parallel_iterations=1)[1]
        elif kind == "branch":
            def then():
                y = state
                for one in inside:
                    y = self.run(one, y, x, [])
                return y
            return tf.cond(tf.shape(x)[0] > n + 2, then, lambda: state * 0.5)
        return state

def check_same(found, name, on_host):
    # In the order of `steps`: captured or not, then served, captured or not. Served functions have
    # their argument on the host. TensorFlow's optimizer may order factors otherwise for one on the
    # GPU, which changes last bits.
    others = [n for n, one in enumerate(found) if one != found[0 if on_host else n // 2 * 2]]
    check(not others, f"{name}, step {others}" if others else name)

def program(seed):
    global replays
    statements = draw(seed)
    on_host = seed % 2 == 0
    steps = [Step(statements, mode, served, np.random.default_rng(seed))
             for served in SERVED for mode in ("auto", "off")]
    r = random.Random(seed + 1)
    rng = np.random.default_rng(seed + 1)
    kept = []
    before = replayed()
    for turn in range(14):
        with tf.device("/CPU:0" if on_host else GPU):
            x = tf.constant(drawn(rng))
        results = [bits(step.step(x)) for step in steps]
        check_same(results, f"results of {seed}", on_host)
        what = r.randrange(16)
        with tf.device(GPU):
            if what == 0:
                value, i = drawn(rng), r.randrange(VARIABLES)
                for step in steps:
                    step.variables[i].assign(value)
            elif what == 1:
                i = r.randrange(VARIABLES)
                kept.append([step.variables[i].read_value() for step in steps])
                kept.append([k.numpy().copy() for k in kept[-1]])
            elif what == 2:
                for step in steps:
                    step.variables[0].assign_add(step.variables[1])
            if r.random() < 0.3:
                found = [bits(step.variables) for step in steps]
                check_same(found, f"variables of {seed}", on_host)
    for reads, copies in zip(kept[::2], kept[1::2]):
        check(bits(reads) == bits(copies), f"kept in {seed}")
        check_same([bits(read) for read in reads], f"kept by all in {seed}", on_host)
    check_same([bits(step.variables) for step in steps], f"variables of {seed}", on_host)
    replays += replayed() - before
"""


REPLAYS = 2 if kit.ON_GPU else 4


@pytest.mark.parametrize("part", range(2))
def test_random_programs(part: int) -> None:
    count = 12 * kit.PROGRAMS
    kit.run_captured(
        CODE.replace("ON_GPU", str(kit.ON_GPU)),
        f"""
for seed in range({part * count}, {(part + 1) * count}):
    program(seed)
check(replays > {REPLAYS * count}, f"{{replays}} replays")
""",
        capture="marked",
    )
