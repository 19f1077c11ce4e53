# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs with ops that cannot be captured are captured in pieces, with the bits of other steps.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs. TFMS_TEST_PROGRAMS multiplies the
number of random programs.
"""

import pytest

from multistream.testing import kit

COMPARE = """
FEWEST = int(os.environ["TF_MULTI_STREAM_CAPTURE_PIECES"])

def compare(name, function, *draws, pieces=1, runs=12):
    # Each call has other numbers. `pieces`: the fewest that are captured.
    sides = [tf.cuda.captured(mode=mode)(on_gpu(function)) for mode in ("auto", "off")]
    before = total("pieces_replayed")
    for _ in range(runs):
        arguments = [draw() for draw in draws]
        replay, step = (bits(side(*arguments)) for side in sides)
        check(replay == step, name)
    if pieces is None:
        return
    right = (total("pieces_replayed") > before) == (pieces > 0)
    check(right, right or f"{name}: {tf.cuda.capture_report()}")

with tf.device(GPU):
    weights = [tf.constant(floats(6, 6)) for _ in range(4)]
def layers(x):
    for w in weights:
        x = tf.tanh(x @ w) + 0.1
    return x
rows = lambda: floats(5, 6)
"""

FUNCTIONS = """
# The rows of the second piece depend on data: its shapes are known when they arrive.
compare("where", lambda x: layers(tf.gather(layers(x), tf.where(x[:, 0] > 0)[:, 0])), rows, runs=40)
compare("unique", lambda i, x: layers(tf.gather(x, tf.unique(i)[0] % 5)),
        lambda: rng.integers(0, 3, 9), rows, runs=40)
compare("32-bit ids", lambda i, x: layers(tf.gather(layers(x), tf.unique(i)[1] + i % 2)),
        lambda: rng.integers(0, 3, 9).astype(np.int32), rows)
# A size that is a value is a part of the key.
compare("tiles", lambda n, x: layers(tf.tile(layers(x), tf.stack([n, 1]))),
        lambda: np.int32(rng.integers(1, 3)), rows, runs=40)
compare("a range", lambda n, x: layers(x) + tf.reduce_sum(tf.cast(tf.range(n), tf.float32)),
        lambda: np.int32(rng.integers(1, 3)), rows, runs=40)
compare("many sizes", lambda n, x: layers(x)[: n % 5 + 1] * tf.cast(n, tf.float32),
        lambda: np.int32(rng.integers(1, 1000)), rows, pieces=None, runs=60)
compare("results on the host", lambda x: (layers(x), tf.shape(layers(x)), tf.where(x > 0)), rows)
compare("a 64-bit shape",
        lambda x: layers(x) * tf.cast(tf.size(tf.where(x > 0), tf.int64), x.dtype), rows, runs=40)
compare("no input", lambda: (layers(tf.ones([5, 6])), tf.where(weights[0] > 0)))
compare("no rows", lambda x: layers(tf.gather(layers(x), tf.where(x[:, 0] > 99)[:, 0])), rows)
compare("little to capture", lambda x: tf.where(x > 0), rows, pieces=int(FEWEST == 1))

def shape_between(x):
    y = layers(x)
    kept = tf.boolean_mask(y, y[:, 0] > 0.1)  # reshapes to what slices of the shape say
    return layers(kept), tf.shape(y)[1:] * 2
compare("a shape for ops between", shape_between, rows, runs=40)
check("gives the host" not in str(tf.cuda.capture_report()), f"{tf.cuda.capture_report()}")

def on_the_host(x):
    y = layers(x)
    with tf.device("/CPU:0"):
        z = tf.reverse(tf.strings.to_number(tf.strings.as_string(y, precision=9)), [0])
    return layers(z) + y
compare("a value of the host in the middle", on_the_host, rows)

with tf.device("/CPU:0"):  # as TensorFlow does it with int32 variables
    names = tf.Variable(tf.range(100, 106))
def names_of_the_best(x):
    best = tf.math.top_k(layers(x), 2)
    return layers(tf.repeat(tf.cast(tf.gather(names, best.indices), tf.float32), 3, 1))
compare("names of the best", names_of_the_best, rows)

def in_python(x):
    with tf.device("/CPU:0"):
        z = tf.numpy_function(lambda y: y * 2, [layers(x)], tf.float32)
    return layers(tf.reshape(z, [5, 6]))
compare("a function of Python in the middle", in_python, rows, pieces=None)

def loops(x):
    y = layers(x)
    y = tf.while_loop(lambda y: tf.reduce_sum(y) > 0.3, lambda y: (y * 0.7 - 0.1,), (y,))[0]
    return layers(y)
compare("a loop in the middle", loops, rows)

def of_loop(x, n):
    y = tf.while_loop(lambda k, y: k < n, lambda k, y: (k + 1, layers(y) * tf.cast(k, tf.float32)),
                      (0, x), parallel_iterations=8)[1]
    return y, tf.where(y > 0)
compare("layers in a loop", of_loop, rows, lambda: np.int32(rng.integers(1, 9)), runs=40)

def of_branches(x):
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: layers(x), lambda: layers(x * 0.5) + 1.0)
    return y, tf.where(y > 0)
compare("layers in branches", of_branches, rows, runs=40)

def branches(x):
    y = layers(x)
    y = tf.cond(tf.reduce_sum(y) > 0, lambda: layers(y), lambda: y * 2.0)
    z = tf.cond(tf.reduce_sum(y) > 1,
                lambda: tf.where(y > 0)[:, 0], lambda: tf.zeros([1], tf.int64))
    return layers(y) * tf.cast(tf.size(z), tf.float32)
compare("branches in the middle", branches, rows, runs=40)

@tf.function(autograph=False)
def called(x):
    return layers(tf.gather(x, tf.where(x[:, 0] > 0)[:, 0]))
compare("a function that is called", lambda x: called(layers(x)), rows, runs=40)

def checked(x):
    y = layers(x)
    with tf.control_dependencies([tf.debugging.assert_less(tf.reduce_sum(x), 90.0, message="big")]):
        return layers(tf.gather(y, tf.where(y[:, 0] > 0)[:, 0]))
compare("assert", checked, rows, runs=40)
side = tf.cuda.captured(mode="auto")(on_gpu(checked))
for i in range(20):
    fails = i % 5 == 4
    try:
        side(tf.constant(rows() + np.float32(100 * fails)))
        check(not fails, "an assert that holds")
    except tf.errors.InvalidArgumentError as error:
        check(fails and "big" in str(error), "an assert that fails")

# An error of an op in a piece, and of one between.
def out_of_range(i, x):
    found = tf.gather(layers(x), tf.unique(i)[0])
    with tf.device("/CPU:0"):
        parsed = tf.strings.to_number(tf.strings.as_string(found))
    return layers(parsed)
compare("in range", out_of_range, lambda: rng.integers(0, 5, 9), rows, runs=40)
"""


@pytest.mark.parametrize(("fewest", "verify"), [("4", "0"), ("1", "2")])
def test_functions(fewest: str, verify: str) -> None:
    kit.run_captured(
        COMPARE,
        FUNCTIONS,
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_PIECES=fewest,
        TF_MULTI_STREAM_CAPTURE_VERIFY=verify,
    )


def test_trainings() -> None:
    kit.run_captured(
        """
layers = tf.keras.layers

def training(optimizer, *more):
    def make():
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential([layers.Embedding(20, 8), layers.Flatten(),
                                     layers.Dense(16, "relu"), *[m() for m in more],
                                     layers.Dense(16, "tanh"), layers.Dense(1)])
        trained = optimizer()
        model.build((6, 2))
        trained.build(model.trainable_variables)
        @tf.function(autograph=False)
        def step(ids, labels):
            with tf.device(GPU):
                with tf.GradientTape() as tape:
                    found = model(ids, training=True)
                    kept = tf.boolean_mask(found, labels > 0.1)
                    loss = tf.reduce_sum((kept - 1.0) ** 2)
                    loss += tf.reduce_mean((found - labels) ** 2)
                variables = model.trainable_variables
                trained.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return tf.identity(loss)
        return step, [*model.variables, *trained.variables]
    return make

batches = [(rng.integers(0, 20, (6, 2)).astype(np.int32), abs(floats(6, 1))) for _ in range(5)]
for name in ("SGD", "Adam", "Adagrad"):
    optimizer = getattr(tf.keras.optimizers, name)
    report = alike(name, training(lambda: optimizer(0.1)), *batches, captured=None, runs=40)
    check(report.share > 0.7, f"{name}: {report}")
report = alike("dropout", training(lambda: tf.keras.optimizers.SGD(0.1),
                                   lambda: layers.Dropout(0.3, seed=7)),
               *batches, captured=None, runs=40)
check(report.share > 0.7, f"dropout: {report}")
""",
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_PIECES="2",
        TF_DETERMINISTIC_OPS="1",  # otherwise a GPU sums rows' gradients in any order
    )


def test_values_that_pieces_read_before_one_changes_the_variable() -> None:
    """Later ops see what was read; a piece that has it alone changes the variable in place."""
    kit.run_captured(
        """
def trained(is_used_later):
    def make():
        weights = [tf.Variable(np.linspace(0, 0.1 * i, 36, dtype=np.float32)) for i in range(4)]
        @tf.function(autograph=False)
        def step(x):
            with tf.device(GPU):
                values = [w.read_value() for w in weights]
                def chain(y):
                    for value in values:
                        y = tf.tanh(y @ tf.reshape(value, [6, 6])) + 0.1
                    return y
                y = chain(x)
                z = chain(tf.gather(y, tf.where(y[:, 0] > -9)[:, 0]))
                changes = [w.assign(value * 0.99 + tf.reduce_mean(z) * 0.01)
                           for w, value in zip(weights, values)]
                with tf.control_dependencies(changes):
                    later = [tf.unique(value) for value in values if is_used_later]
                return tf.identity(z), later
        return step, weights
    return make

x = [(floats(5, 6),) for _ in range(3)]
report = alike("alone", trained(False), *x, captured=None, runs=40)
check(report.share > 0.9, f"{report}")
alike("used later", trained(True), *x, captured=None, runs=40)
"""
    )


def test_trainings_with_checked_ids() -> None:
    """The check runs before the piece: a step with a wrong id fails, and the next ones train."""
    kit.run_captured(
        """
def make():
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(20, 8), layers.Flatten(),
                                 *[layers.Dense(16, "relu") for _ in range(8)], layers.Dense(1)])
    model.build((6, 2))
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    @tf.function(autograph=False)
    def step(ids, labels):
        with tf.device(GPU):
            # Less than the rows: on an emulated GPU the lookup fails, too, where there is no row.
            tf.debugging.assert_less(ids, 15, message="no such id")
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(ids, training=True) - labels) ** 2)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return tf.identity(loss)
    return step, model.variables

draw = lambda most: (rng.integers(0, most, (6, 2)).astype(np.int32), floats(6, 1))
report = alike("checked", make, *[draw(15) for _ in range(5)], captured=None, runs=40)
check(report.share > 0.9, f"{report}")

step, variables = make()
step = tf.cuda.captured(mode="auto")(step)
for i in range(60):
    ids, labels = draw(15)
    wrong = i % 6 == 5
    if wrong:
        ids[3, 1] = 17
    try:
        loss = step(ids, labels).numpy()
        check(not wrong and np.isfinite(loss), "an id that there is")
    except tf.errors.InvalidArgumentError as error:
        check(wrong and "no such id" in str(error), "an id that there is not")
check(all(np.isfinite(v.numpy()).all() for v in variables), "the weights")
""",
        TF_DETERMINISTIC_OPS="1",
    )


def test_sessions_and_threads() -> None:
    kit.run_captured(
        COMPARE,
        """
tf.config.experimental.enable_tensor_float_32_execution(False)  # NumPy has no such rounding
with tf.Graph().as_default(), tf.device(GPU):
    fed = tf1.placeholder(tf.float32, [None, 6])
    w = tf1.get_variable("w", initializer=floats(6, 6), use_resource=True)
    y = fed
    for _ in range(4):
        y = tf.tanh(y @ w) + 0.1
    kept = tf.boolean_mask(y, y[:, 0] > 0.1)
    z = kept
    for _ in range(4):
        z = tf.tanh(z @ w) + 0.1
    with tf.device("/CPU:0"):
        text = tf.strings.as_string(tf.shape(z)[0])
    change = w.assign(w * 0.99)
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(config=config) as session:
        session.run(w.initializer)
        start = w.eval()
        def expected(x, w):
            for _ in range(4):
                x = np.tanh(x @ w) + 0.1
            x = x[x[:, 0] > 0.1]
            for _ in range(4):
                x = np.tanh(x @ w) + 0.1
            return x
        def call(x):
            return session.run([z, text], {fed: x})
        before = total("pieces_replayed")
        def client(i):
            for k in range(40):
                x = np.random.default_rng(100 * i + k).normal(size=(7, 6)).astype(np.float32)
                found, size = call(x)
                right = expected(x, start)
                check(np.allclose(found, right, atol=1e-5) and size == b"%d" % len(right), "z")
        run_threads([lambda i=i: client(i) for i in range(4)])
        check(total("pieces_replayed") > before + 60, f"replayed: {tf.cuda.capture_report()}")
        for k in range(20):
            session.run(change)
            x = floats(7, 6)
            check(np.allclose(call(x)[0], expected(x, w.eval()), atol=1e-5), "changed")

# Any op may have the memory of a reference variable as an input; a piece would not lock it.
with tf.Graph().as_default(), tf.device(GPU):
    fed = tf1.placeholder(tf.float32, [None, 6])
    w = tf1.get_variable("w", initializer=start, use_resource=False)
    y = fed
    for _ in range(4):
        y = tf.tanh(y @ w) + 0.1
    kept = tf.boolean_mask(y, y[:, 0] > 0.1)
    with tf1.Session(config=config) as session:
        session.run(w.initializer)
        before = total("pieces_replayed")
        for _ in range(20):
            session.run(kept, {fed: floats(7, 6)})
        check(total("pieces_replayed") == before, "reference variables")
""",
        groups=4,
        TF_MULTI_STREAM_CAPTURE_PIECES="2",
    )


@pytest.mark.parametrize("percent", [80, 99])
def test_a_share_can_be_required(percent: int) -> None:
    kit.run_captured(
        f"PERCENT = {percent}\n",
        """
def function(x):
    for _ in range(10):
        x = tf.tanh(x @ tf.ones([4, 4]))
    return tf.where(x > 0.1)

step = tf.cuda.captured(on_gpu(function), mode="require")
if PERCENT == 80:
    x = floats(3, 4)
    for _ in range(6):
        step(x)
    report = tf.cuda.capture_report(step, x)
    check(0.8 < report.share < 0.99, f"{report}")
else:
    try:
        step(floats(3, 4))
        check(False, "no error")
    except tf.errors.FailedPreconditionError as error:
        says = "Where", "; pieces have 9", "less than TF_MULTI_STREAM_CAPTURE_PERCENT=99"
        check(all(text in error.message for text in says), error.message)
""",
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_PIECES="2",
        TF_MULTI_STREAM_CAPTURE_PERCENT=str(percent),
    )


RANDOM = """
import random

def draw(seed):
    r = random.Random(seed)
    with tf.device(GPU):
        variables = [tf.Variable(floats(4, 4)) for _ in range(2)]

    # Values: matrices of any number of rows and 4 columns, and int32 vectors of ids.
    matrix = {
        "layer": lambda x, y, i: tf.tanh(x @ variables[0]) + 0.1,
        "another": lambda x, y, i: tf.nn.softmax(x @ variables[1]) * x,
        "rows": lambda x, y, i: tf.gather(tf.concat([x, tf.ones([1, 4])], 0),
                                          i % (tf.shape(x)[0] + 1)),
        "join": lambda x, y, i: tf.concat([x, tf.sin(y)], 0),
        "by shape": lambda x, y, i: x * tf.cast(tf.shape(y)[0], tf.float32),
        "reshape": lambda x, y, i: tf.reshape(tf.transpose(x), [tf.size(x) // 4, 4]),
        "mask": lambda x, y, i: tf.boolean_mask(x, x[:, 0] > 0),
        "where": lambda x, y, i: tf.gather(x, tf.where(x[:, 1] < 0.2)[:, 0]) * 0.5,
        "tile": lambda x, y, i: tf.tile(x, tf.stack([tf.size(i) % 2 + 1, 1])),
        "sort": lambda x, y, i: tf.sort(x, axis=1) - tf.reduce_mean(x),
        "host": lambda x, y, i: host(x),
        "cond": lambda x, y, i: tf.cond(
            tf.reduce_sum(x) > 0, lambda: tf.cos(x @ variables[0]) * 2.0 + y[:1],
            lambda: tf.tanh(tf.sin(x) + tf.cast(tf.reduce_sum(i), tf.float32))),
        "loop": lambda x, y, i: tf.while_loop(
            lambda n, z: n < tf.size(i) % 3,
            lambda n, z: (n + 1, tf.cos(z) + tf.reduce_sum(tf.gather(y, i * 0)) * z), (0, x))[1],
        "while": lambda x, y, i: tf.while_loop(
            lambda z, n: tf.reduce_sum(tf.abs(z)) > 4.0,
            lambda z, n: (z * 0.5 - 0.01 * tf.sin(z @ variables[1]), n + i[:1]), (x, i[:1]))[0],
        "assert": lambda x, y, i: checked(x),
        "change": lambda x, y, i: changed(x),
        "read": lambda x, y, i: x * variables[0][0, 0],
        "segments": lambda x, y, i: tf.math.unsorted_segment_sum(
            tf.gather(tf.concat([x, tf.ones([1, 4])], 0), tf.zeros_like(i)), i % 3, 3),
        "partition": lambda x, y, i: tf.dynamic_partition(x, tf.cast(x[:, 0] > 0, tf.int32), 2)[1],
        "random": lambda x, y, i: x + tf.random.stateless_uniform(tf.shape(x), [seed, tf.size(i)]),
    }
    ids = {
        "unique": lambda x, i: tf.unique(i)[0],
        "sum": lambda x, i: tf.concat([i + 1, i * 2], 0)[:6],
        "argmax": lambda x, i: tf.cast(tf.argmax(tf.concat([x, tf.ones([1, 4])], 0), 1), tf.int32),
        "range": lambda x, i: tf.range(tf.shape(x)[0]),
        "positive": lambda x, i: tf.boolean_mask(i, i > 1),
        "abs": lambda x, i: tf.abs(i - 3),
    }

    def host(x):
        with tf.device("/CPU:0"):
            return tf.reverse(tf.reshape(tf.identity(x), [-1, 4]), [1]) + 0.5

    def checked(x):
        with tf.control_dependencies([tf.debugging.assert_less(tf.reduce_sum(x), 1e30)]):
            return tf.identity(x)

    def changed(x):
        change = variables[r.randrange(2)].assign_add(tf.ones([4, 4]) * 0.01)
        with tf.control_dependencies([change] if r.random() < 0.5 else []):
            return x * 1.5

    plan = [(r.choice(sorted(matrix)), r.choice(sorted(ids)), r.randrange(3), r.randrange(3),
             r.randrange(2), r.random() < 0.4)
            for _ in range(r.randint(4, 12))]
    training = any(step[0] == "change" for step in plan)

    def function(x, y, i):
        state = r.getstate()
        values, numbers = [x, y, x + y[:1]], [i, i[::-1]]
        for name, of_ids, a, b, c, both in plan:
            if both:
                numbers[c] = ids[of_ids](values[a], numbers[1 - c])
            values[a] = matrix[name](values[a], values[b], numbers[c])[:12]
        r.setstate(state)  # each trace draws the same
        return values, numbers, [v.read_value() for v in variables]

    start = [v.numpy() for v in variables]
    def reset():
        for v, value in zip(variables, start):
            v.assign(value)
    return function, reset, training

def batch(rows):
    return lambda: floats(rows, 4)

def program(seed):
    function, reset, training = draw(seed)
    r = random.Random(seed + 1)
    rows = r.randint(1, 5)
    sides = [tf.cuda.captured(mode=mode)(on_gpu(function)) for mode in ("auto", "off")]
    # The numbers repeat, so that shapes do.
    calls = [(floats(rows, 4), floats(rows, 4), rng.integers(0, 9, 6).astype(np.int32))
             for _ in range(2)]
    found = []
    for side in sides:
        reset()
        found.append([])
        try:
            for n in range(14):
                found[-1].append(bits(side(*calls[n % 2])))
        except tf.errors.InvalidArgumentError:  # shapes do not fit: an error on both sides
            pass
    check(found[0] == found[1], f"program {seed}")
"""


@pytest.mark.parametrize("part", range(2))
def test_random_programs(part: int) -> None:
    count = 10 * kit.PROGRAMS
    kit.run_captured(
        COMPARE,
        RANDOM,
        f"""
for seed in range({part * count}, {(part + 1) * count}):
    program(seed)
check(total("pieces_replayed") > {count}, f"{{total('pieces_replayed')}} pieces were replayed")
""",
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_PIECES=str(part + 1),
        TF_MULTI_STREAM_CAPTURE_VERIFY=str(3 * part),
    )
