# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs with ops that cannot be captured are captured in pieces, with the bits of other steps."""

import pathlib
import pickle

import pytest

from multistream.testing import kit
from multistream.testing import program_results as programs

FUNCTIONS = """
FEWEST = int(os.environ["TF_MULTI_STREAM_CAPTURE_PIECES"])
compare = functools.partial(compare, of="pieces_replayed")

with tf.device(GPU):
    weights = [tf.constant(floats(6, 6)) for _ in range(4)]
def layers(x):
    for w in weights:
        x = tf.tanh(x @ w) + 0.1
    return x
rows = lambda: floats(5, 6)

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
        lambda: np.int32(rng.integers(1, 1000)), rows, captured=None, runs=60)
compare("results on the host", lambda x: (layers(x), tf.shape(layers(x)), tf.where(x > 0)), rows)
compare("a 64-bit shape",
        lambda x: layers(x) * tf.cast(tf.size(tf.where(x > 0), tf.int64), x.dtype), rows, runs=40)
compare("no input", lambda: (layers(tf.ones([5, 6])), tf.where(weights[0] > 0)))
compare("no rows", lambda x: layers(tf.gather(layers(x), tf.where(x[:, 0] > 99)[:, 0])), rows)
compare("little to capture", lambda x: tf.where(x > 0), rows, captured=FEWEST == 1)

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
compare("a function of Python in the middle", in_python, rows, captured=None)

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
    if i % 5 == 4:
        fails(tf.errors.InvalidArgumentError, lambda: side(rows() + np.float32(100)), "big")
    else:
        side(rows())

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
        FUNCTIONS,
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_PIECES=fewest,
        TF_MULTI_STREAM_CAPTURE_VERIFY=verify,
    )


def test_trainings() -> None:
    kit.run_captured(
        """
layers = tf.keras.layers

class Masked(tf.keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, *more, **options):
        kept = tf.boolean_mask(y_pred, y > 0.1)
        return tf.reduce_sum((kept - 1.0) ** 2) + tf.reduce_mean((y_pred - y) ** 2)

def model(*more):
    made = Masked([layers.Embedding(20, 8), layers.Flatten(), layers.Dense(16, "relu"),
                   *[m() for m in more], layers.Dense(16, "tanh"), layers.Dense(1)])
    made.build((6, 2))
    return made

batches = [(rng.integers(0, 20, (6, 2)).astype(np.int32), abs(floats(6, 1))) for _ in range(5)]
for name, *more in ("SGD",), ("Adam",), ("Adagrad",), ("SGD", lambda: layers.Dropout(0.3)):
    made = trained(lambda: model(*more), lambda: getattr(tf.keras.optimizers, name)(0.1))
    report = alike(name, made, *batches, captured=None, runs=40)
    check(report.share > 0.7, f"{name} {more}: {report}")
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
        @on_gpu
        def step(x):
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
            return z, later
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
class Checked(tf.keras.Sequential):
    def train_step(self, data):
        # Less than the rows: on an emulated GPU the lookup fails, too, where there is no row.
        tf.debugging.assert_less(data[0], 15, message="no such id")
        return super().train_step(data)

def model():
    layers = tf.keras.layers
    made = Checked([layers.Embedding(20, 8), layers.Flatten(),
                    *[layers.Dense(16, "relu") for _ in range(8)], layers.Dense(1)])
    made.build((6, 2))
    return made

make = trained(model, lambda: tf.keras.optimizers.SGD(0.1))
draw = lambda: (rng.integers(0, 15, (6, 2)).astype(np.int32), floats(6, 1))
report = alike("checked", make, *[draw() for _ in range(5)], captured=None, runs=40)
check(report.share > 0.9, f"{report}")

step, variables = make()
step = tf.cuda.captured(mode="auto")(step)
for i in range(60):
    ids, labels = draw()
    if i % 6 == 5:
        ids[3, 1] = 17
        fails(tf.errors.InvalidArgumentError, lambda: step(ids, labels), "no such id")
    else:
        check(np.isfinite(step(ids, labels)["loss"]), "an id that there is")
check(all(np.isfinite(v.numpy()).all() for v in variables), "the weights")
""",
        TF_DETERMINISTIC_OPS="1",
    )


def test_sessions_and_threads() -> None:
    kit.run_captured(
        """
tf.config.experimental.enable_tensor_float_32_execution(False)  # NumPy has no such rounding

def chains(x, w, np, mask):
    for _ in range(4):
        x = np.tanh(x @ w) + 0.1
    x = mask(x, x[:, 0] > 0.1)
    for _ in range(4):
        x = np.tanh(x @ w) + 0.1
    return x

first = floats(6, 6)
def run_sessions(use_resource):
    with tf.Graph().as_default(), tf.device(GPU):
        fed = tf1.placeholder(tf.float32, [None, 6])
        w = tf1.get_variable("w", initializer=first, use_resource=use_resource)
        z = chains(fed, w, tf, tf.boolean_mask)
        with tf.device("/CPU:0"):
            text = tf.strings.as_string(tf.shape(z)[0])
        change = w.assign(w * 0.99)
        with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
            def call(x, w):
                found, size = session.run([z, text], {fed: x})
                right = chains(x, w, np, lambda x, mask: x[mask])
                check(np.allclose(found, right, atol=1e-5) and size == b"%d" % len(right), "z")
            session.run(w.initializer)
            start = session.run(w)
            def client(i):
                for k in range(40):
                    call(np.random.default_rng(100 * i + k).normal(size=(7, 6)).astype("f"), start)
            before = total("pieces_replayed")
            run_threads([lambda i=i: client(i) for i in range(4)])
            for k in range(20):
                session.run(change)
                call(floats(7, 6), session.run(w))
            return total("pieces_replayed") - before

replays = run_sessions(use_resource=True)
check(replays > 60, f"{replays} replayed: {tf.cuda.capture_report()}")
# Any op may have the memory of a reference variable as an input; a piece would not lock it.
check(run_sessions(use_resource=False) == 0, "reference variables")
""",
        groups=4,
        TF_MULTI_STREAM_CAPTURE_PIECES="2",
    )


LOOPS = """
with tf.device(GPU):
    w = tf.constant(floats(8, 8))

def cut(x):  # an op that is not captured, between pieces
    return tf.ensure_shape(tf.gather(x, tf.where(x[:, 0] > -9)[:, 0]), x.shape)

def pieces(name, function, *draws, runs=14):
    # How many pieces a call replays.
    compare(name, function, *draws, captured=None, runs=runs)
    calls = tf.cuda.captured(mode="auto")(on_gpu(function))
    for _ in range(20):
        inputs = [draw() for draw in draws]
        before = total("pieces_replayed")
        calls(*inputs)
    return total("pieces_replayed") - before

def repeated(n, x):
    def body(i, y):
        return i + 1, tf.tanh(y @ w) + 0.1
    return tf.while_loop(lambda i, y: i < n, body, (0, x))[1]

def nested(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, repeated(2, y)), (0, x))[1]

def scanned(x):
    return tf.scan(lambda a, row: tf.tanh(a + row), x)

rnn = tf.keras.layers.RNN(tf.keras.layers.LSTMCell(8))
with tf.device(GPU):
    rnn(np.zeros([1, 6, 8], np.float32))

def gradients(x):
    with tf.GradientTape() as tape:
        y = rnn(tf.reshape(x, [-1, 6, 8]))
        loss = tf.reduce_sum(y * y)
    return loss, tape.gradient(loss, [v.value for v in rnn.trainable_variables])

rows = lambda: floats(6, 8)
for name, loop in {"constant": lambda x: repeated(6, x), "nested": nested, "scan": scanned,
                   "rows": lambda x: repeated(tf.shape(x)[0], x), "gradients": gradients}.items():
    found = pieces(name, lambda x: loop(cut(x * 2.0) + 1.0), rows)
    check(1 <= found <= 2, f"{name}: {found} pieces, {tf.cuda.capture_report()}")
# A piece in each iteration, so that no recording is made for each number of iterations.
count = lambda: np.int32(rng.integers(3, 100))
found = pieces("a value", lambda n, x: repeated(n, cut(x * 2.0) + 1.0), count, rows)
check(found >= 3, f"a value: {found} pieces")
def in_an_array(n, x):
    y = cut(x * 2.0) + 1.0
    return tf.while_loop(lambda i, _: i < n,
                         lambda i, found: (i + 1, found.write(i, tf.tanh(y @ w))),
                         (0, tf.TensorArray(tf.float32, size=n)))[1].stack()
found = pieces("an array", in_an_array, count, rows)
check(found >= 3, f"an array: {found} pieces")
def of_some_rows(x):
    some = tf.boolean_mask(x, x[:, 0] > 0.0)
    return tf.map_fn(lambda row: tf.tanh(row * 2.0) + 1.0, some), tf.tanh(tf.tanh(x @ w) @ w)
found = pieces("some rows", of_some_rows, lambda: floats(300, 8))
check(found >= 1, "some rows: no piece, as there is another number of rows")
found = pieces("a value of the GPU", lambda x: tf.while_loop(
    lambda y: tf.reduce_sum(y) < 50.0, lambda y: (tf.abs(tf.tanh(y @ w)) + y,),
    (cut(abs(x)) + 1.0,))[0], rows)
check(found >= 3, f"a value of the GPU: {found} pieces")
"""


def test_a_loop_is_in_a_piece_with_all_its_iterations() -> None:
    """If constants and shapes decide how many there are."""
    kit.run_captured(
        LOOPS,
        capture="marked",
        TF_DETERMINISTIC_OPS="1",
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
    fails(tf.errors.FailedPreconditionError, lambda: step(floats(3, 4)), "Where",
          "; pieces have 9", "less than TF_MULTI_STREAM_CAPTURE_PERCENT=99")
""",
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_PIECES="2",
        TF_MULTI_STREAM_CAPTURE_PERCENT=str(percent),
    )


@pytest.mark.parametrize("fewest", [1, 2])
def test_random_programs(fewest: int, tmp_path: pathlib.Path) -> None:
    seeds = range(50000 * fewest, 50000 * fewest + 8 * kit.PROGRAMS)
    path = tmp_path / "results.pickle"
    found = []
    for capture in ("off", "auto"):
        kit.run_job(
            programs.save_results,
            str(path),
            seeds,
            False,
            14,  # calls
            TF_NODE_LEVEL_MULTISTREAM="false",
            TF_GPU_STREAM_GROUP_COUNT="2",
            TF_MULTI_STREAM_CAPTURE=capture,
            TF_MULTI_STREAM_CAPTURE_PIECES=str(fewest),
            TF_MULTI_STREAM_CAPTURE_VERIFY=str(3 * fewest - 3),
        )
        results, stats = pickle.loads(path.read_bytes())
        found.append(results)
    assert not programs.differing(*found)
    pieces = sum(s.pieces_replayed for s in stats)
    assert pieces > 4 * len(seeds), pieces
