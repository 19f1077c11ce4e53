# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random numbers in captured steps: those of stock TensorFlow with the same seeds, none twice."""

from multistream.testing import kit

RANDOM = """
def numbers(seed):
    generator = tf.random.Generator.from_seed(5)
    def draw(x):
        h = tf.tanh(tf.sin(x) * 2.0) + 1.0
        drawn = [
            tf.random.uniform(tf.shape(x), seed=seed), tf.random.normal([3, 4], seed=seed + 1),
            tf.random.truncated_normal([7], seed=seed + 2),
            tf.random.uniform([9], 0, 1000, tf.int64, seed=seed + 3),
            tf.nn.dropout(h, 0.4, seed=seed + 4), tf.random.shuffle(h, seed=seed + 5),
            generator.normal([4]), generator.uniform([4])]
        return [*drawn, tf.tanh(tf.sin(drawn[0] + h) * 2.0) + tf.reduce_sum(drawn[4])]
    return draw, [generator.state]
"""


def test_random_numbers() -> None:
    """The sequence of stock TensorFlow, also if only some steps are replayed; no number twice."""
    kit.run_captured(
        RANDOM,
        """
def make():
    tf.random.set_seed(7)
    draw, variables = numbers(11)
    return on_gpu(draw), variables

inputs = [(floats(n, 4),) for n in (8, 8, 5, 8, 3)]
report = alike("numbers", make, *inputs, captured=None, runs=60)
check(report.share > 0.6, str(report))

with tf.device(GPU):
    draw = tf.cuda.captured(mode="auto")(make()[0])
x = floats(8, 4)
drawn = [bits(draw(x)) for _ in range(40)]
for i in range(len(drawn[0])):
    check(i == 5 or len({str(d[i]) for d in drawn}) == 40, f"number {i} was drawn twice")
""",
        capture="marked",
        TF_DETERMINISTIC_OPS="1",
    )


def test_draws_in_a_recording() -> None:
    """A step that draws is replayed as a whole; a second run, to verify it, would draw others."""
    kit.run_captured(
        """
def make(seed):
    def seeded():
        tf.random.set_seed(5)
        v = tf.Variable(tf.zeros([50, 40]))
        def step(x):
            h = tf.nn.dropout(x @ (v + 1.0), 0.3)
            normal = tf.random.normal(tf.shape(h), seed=seed)
            v.assign_add(tf.matmul(x, h + normal, transpose_a=True) * 1e-3)
            return tf.reduce_sum(h), normal, tf.random.truncated_normal([7, 5], seed=3)
        return on_gpu(step), [v]
    return seeded

for seed in None, 7:
    report = alike(f"seed {seed}", make(seed), *((floats(n, 50),) for n in (8, 8, 5)), runs=40)
    check(report.share == 1, str(report))

def loop(x):
    add = lambda i, x: (i + 1, x + tf.random.normal([8], seed=2))
    return tf.while_loop(lambda i, x: i < 5, add, [0, x], parallel_iterations=1)[1]
alike("a loop", lambda: (tf.random.set_seed(5), (on_gpu(loop), []))[1], (floats(8),),
      captured=None, runs=30)
""",
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_VERIFY="1",
        TF_DETERMINISTIC_OPS="1",
    )


def test_draws_of_threads_and_sessions() -> None:
    """Groups share a generator: in any order, the numbers are those that one thread draws."""
    kit.run_captured(
        """
CALLS = 60

def draws():
    return [tf.random.uniform([5], seed=1), tf.nn.dropout(tf.ones([4, 9]), 0.5, seed=2),
            tf.random.normal([3], seed=3)]

def sequences(steps):
    return [sorted(value for _, value in of_op) for of_op in zip(*steps)]

def compare(name, draw_one, draw, threads=1):
    expected = sequences(bits(draw_one()) for _ in range(CALLS))
    found = []
    def client():
        for _ in range(CALLS // threads):
            found.append(bits(draw()))
    before = replayed()
    run_threads([client] * threads)
    check(sequences(found) == expected, f"{name}: other numbers")
    check(replayed() - before > CALLS // 2, f"{name}: {tf.cuda.capture_report()}")

def function(mode):
    tf.random.set_seed(5)
    return tf.cuda.captured(mode=mode)(on_gpu(draws))

compare("one thread", function("off"), function("auto"))
compare("threads", function("off"), function("auto"), threads=6)

with tf.Graph().as_default(), tf.device(GPU):
    tf1.set_random_seed(5)
    drawn = draws()
    session = tf1.Session()
compare("session", function("off"), lambda: session.run(drawn), threads=6)
""",
        groups=4,
    )


def test_seeds_on_the_gpu() -> None:
    """The key that TensorFlow makes of a seed on the host, a recording makes on the GPU."""
    kit.run_captured("""
def draw(seed):
    seed = seed * 3 - 1
    shape = [5, 7]
    return [tf.random.stateless_uniform(shape, seed), tf.random.stateless_normal(shape, seed),
            tf.random.stateless_truncated_normal(shape, seed),
            tf.random.stateless_uniform(shape, seed, -4, 900, tf.int64),
            tf.nn.experimental.stateless_dropout(tf.ones(shape), 0.3, seed)]

for dtype in tf.int32, tf.int64:
    top = dtype.max // 4
    seeds = [(tf.constant(seed, dtype),) for seed in ([0, 0], [1, 2], [-7, top], [-top, -1])]
    report = alike(dtype.name, lambda: (on_gpu(draw), []), *seeds, runs=60)
    check(report.share == 1, str(report))

# Seeds of another shape are an error in each call, also once steps are recorded.
@tf.function(autograph=False, input_signature=[tf.TensorSpec(None, tf.int32)])
def any_seed(seed):
    with tf.device(GPU):
        return [tf.identity(drawn) for drawn in draw(seed)]
any_seed = tf.cuda.captured(mode="auto")(any_seed)
for i in range(12):
    for seed in [1, 2, 3], [[1, 2]]:
        fails(tf.errors.InvalidArgumentError, lambda: any_seed(tf.constant(seed)),
              "seed must have shape [2]")
""")
