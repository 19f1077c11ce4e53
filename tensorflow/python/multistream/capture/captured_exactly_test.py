# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is easily lost when a step is recorded: order, last bits, errors, and which op is which."""

import pytest

from multistream.testing import kit

LAYERS = """
weights = [floats(4, 4) for _ in range(6)]

def layers(x, w=None):
    for each in weights:
        x = tf.tanh(x @ (each if w is None else w)) + 0.1
    return x

def variable(*shape):
    with tf.device(GPU):
        return tf.Variable(tf.zeros(shape))
"""


def run(*code: str, groups: int = 2, capture: str = "auto", **more: str) -> None:
    pieces = {"TF_MULTI_STREAM_CAPTURE_PIECES": "4"} | more
    kit.run_captured(LAYERS, *code, groups=groups, capture=capture, **pieces)


@pytest.mark.parametrize("grappler", ["", "DISABLED"])
def test_order_of_a_constant_that_each_piece_copies(grappler: str) -> None:
    """The constant is all that is between two changes of a variable."""
    run(
        f"""
if {grappler!r}:
    tf.config.optimizer.set_experimental_options({{"disable_meta_optimizer": True}})
v, u = variable(4, 4), variable(4, 4)

def made_after(x):
    h = layers(x)
    with tf.control_dependencies([v.assign(h)]):
        one = tf.ones([4, 4])
    v.assign_add(one)
    return h, tf.where(h > 0)

def folded(x):  # Grappler makes OnesLike a constant, after the read
    h = layers(x)
    u.assign(h)
    was = u.read_value()
    out = was * 2.0
    u.assign_add(tf.raw_ops.OnesLike(x=was))
    return h, out, tf.where(h > 0)

first, second = on_gpu(made_after), on_gpu(folded)
for step in range(12):
    h = first(floats(4, 4))[0].numpy()
    check(np.array_equal(v.numpy(), h + 1), f"step {{step}}: {{v.numpy() - h}}")
    h, out, _ = second(floats(4, 4))
    check(np.array_equal(u.numpy(), h.numpy() + 1), f"step {{step}}: {{u.numpy() - h.numpy()}}")
    check(np.array_equal(out, h * 2.0), f"step {{step}}: {{out - h * 2.0}}")
check(total("pieces_replayed") > 6, str(tf.cuda.capture_report()))
"""
    )


def test_order_of_a_constant_and_a_variable_that_a_branch_chooses() -> None:
    run(
        """
v, u = variable(4, 4), variable(4, 4)

def chosen(x, first):
    h = layers(x)
    handle = tf.cond(first, lambda: v.handle, lambda: u.handle)
    with tf.control_dependencies([tf.raw_ops.AssignVariableOp(resource=handle, value=h)]):
        one = tf.ones([4, 4])
    v.assign_add(one)
    u.assign_add(one)
    return h, tf.where(h > 0)

function = on_gpu(chosen)
for step in range(16):
    h = function(floats(4, 4), tf.constant(step % 2 == 0))[0].numpy()
    found = (u, v)[step % 2 == 0].numpy()
    check(np.array_equal(found, h + 1), f"step {step}: {found - h}")
"""
    )


def test_order_of_a_constant_in_a_session() -> None:
    run(
        """
with tf.Graph().as_default(), tf.device(GPU):
    x = tf1.placeholder(tf.float32, [4, 4])
    v = tf1.get_variable("v", [4, 4], use_resource=True, initializer=tf1.zeros_initializer())
    h = layers(x)
    with tf.control_dependencies([v.assign(h, read_value=False)]):
        one = tf.constant(np.ones((4, 4), np.float32))
    add = v.assign_add(one, read_value=False)
    where = tf.where(h > 0)
    with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
        session.run(v.initializer)
        for step in range(12):
            expected = session.run([h, add, where], {x: floats(4, 4)})[0] + 1
            got = session.run(v.read_value())
            check(np.array_equal(got, expected), f"step {step}: {got - expected}")
            del got  # the variable's memory
check(total("pieces_replayed") > 2, str(tf.cuda.capture_report()))
"""
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_order_of_sums(groups: int) -> None:
    """An AddN begins with what it may overwrite: what came from the host, not what others keep."""
    run(
        """
with tf.device(GPU):
    a, b = tf.Variable(floats(64, 64)), tf.Variable(floats(64, 64))

def from_host(*values):
    x, y, z, u = values
    parts = [x, tf.reshape(y, [64, 64]), z[:64], tf.split(u, 4)[1]]
    return [tf.add_n([b, part, a]) for part in parts]

def after_a_piece(x, y):
    h = tf.tanh(x @ y) @ y
    between = [tf.gather(h + i, tf.where(x[:, 0] < i)[:, 0]) for i in (99.0, 98.0)]
    between.append(tf.roll(tf.concat([h, h], 0), 1, axis=0)[:64])
    of_piece = [tf.square(tf.tanh(x @ x) @ y + i) for i in (1.0, 2.0)]
    return (
        tf.add_n([a, between[0], of_piece[0]]), tf.add_n([a, b, of_piece[1], between[1]]),
        tf.add_n([a, b, between[2]]))

values = [floats(64, 64), floats(64, 64), floats(256, 64), floats(256, 64)]
x, y, z, u = values
function = on_gpu(from_host)
calls = [function(*values) for _ in range(10)]
check(replayed() > 4, str(tf.cuda.capture_report()))

def begins_with(value, found):  # TensorFlow may have exchanged the variables
    orders = (value + b.numpy()) + a.numpy(), (value + a.numpy()) + b.numpy()
    return any(np.array_equal(found, each) for each in orders)

for call in calls[5:]:  # before it is replayed, another thread may still refer to the value
    for i, value in enumerate([x, y, z[:64], u[64:128]]):
        check(begins_with(value, call[i]), f"value {i} from the host, or a part of it")
captured, plain = both_ways(on_gpu(after_a_piece))
for call in range(10):
    check(bits(captured(x, y)) == bits(plain(x, y)), f"after a piece, call {call}")
check(total("pieces_replayed") > 4, str(tf.cuda.capture_report()))
""",
        groups=groups,
    )


def test_order_of_sums_of_what_is_used_twice() -> None:
    """Equal ops of a training are one op in a recording; a piece gives a tensor in two shapes."""
    run(
        """
with tf.device(GPU):
    a, v, count = (tf.Variable(floats(64, 4)) for _ in range(3))

def equal_ops(x):
    total = tf.add_n([a, x, tf.tanh(v)])
    again = tf.tanh(v) * 2.0
    count.assign_add(tf.ones([64, 4]))
    return total, again

def many(x):
    for _ in range(3):
        x = tf.tanh(x + 0.1)
    return x

def given_twice(x):
    h = many(x)
    reshaped = tf.reshape(h, [4, 64])
    rolled = tf.roll(tf.sin(x), 1, 0)  # Roll is not captured
    total = tf.add_n([a, rolled, h])
    with tf.control_dependencies([total]):
        return total, tf.roll(reshaped, 1, 0), tf.roll(rolled, 1, 0)

def handed_on(x):
    rolled = [tf.roll(x + i, 1, 0) for i in (1.0, 2.0)]
    same = [tf.einsum("ab->ab", rolled[0]), tf.concat([rolled[1]], 0)]
    return [many(tf.add_n([a, v, each])) for each in same]

for body in equal_ops, given_twice, handed_on:
    captured, plain = both_ways(on_gpu(body))
    for call in range(12):
        x = floats(64, 4)
        check(bits(captured(x)) == bits(plain(x)), f"{body.__name__}, call {call}")
check(total("steps_replayed") + total("pieces_replayed") > 10, str(tf.cuda.capture_report()))
"""
    )


def test_pieces_whose_nodes_have_the_same_names() -> None:
    """What is added to each piece is numbered in each: constants of other types, and masks."""
    run(
        """
def many(x):
    for _ in range(8):
        x = tf.tanh(x + 0.1)
    return x

def tables(ids, b, d):
    c = tf.constant([[0, 1, 2, 1]])
    x = tf.cast(ids, tf.float32) + tf.cast(b, tf.float32) + tf.cast(d, tf.float32)
    a = tf.roll(many(tf.gather(x, c))[0], 1, axis=0)  # Roll is not captured
    return many(tf.cast(tf.concat([ids, c], 0), tf.float32) + a[0])

def maxima(ids):
    c = tf.constant([3, 1, 2, 5])
    a = tf.roll(many(tf.cast(tf.concat([ids[0], c], 0), tf.float32)), 1, axis=0)
    return many(tf.cast(tf.maximum(ids, c), tf.float32) + a[0])

def masks(x):
    a = tf.roll(tf.nn.softmax(many(x)), 1, axis=0)  # masked by -inf
    return tf.reduce_sum(many(a), axis=1)  # masked by 0

def ids():
    return rng.integers(0, 3, (3, 4)).astype(np.int32)

for name, body, makes in ("tables", tables, [ids] * 3), ("maxima", maxima, [ids]):
    spec = [tf.TensorSpec([None, None], tf.int32)] * len(makes)
    captured, plain = both_ways(tf.function(on_gpu(body), input_signature=spec))
    for call in range(12):
        given = [tf.constant(make()) for make in makes]
        check(bits(captured(*given)) == bits(plain(*given)), f"{name}, call {call}")

spec = [tf.TensorSpec([None, None], tf.float32)]
captured, plain = both_ways(tf.function(on_gpu(masks), input_signature=spec))
for length in (16, 11, 7) * 8:
    x = tf.constant(floats(3, length))
    right = np.allclose(captured(x), plain(x), rtol=1e-4)
    check(right, f"{length}: {captured(x)}, {plain(x)}")
check("was not captured" not in str(tf.cuda.capture_report()), str(tf.cuda.capture_report()))
check(tf.cuda.capture_report().share > 0.5, str(tf.cuda.capture_report()))
""",
        TF_MULTI_STREAM_CAPTURE_LENGTHS="16",
    )


def test_sums_on_the_host_have_no_masks() -> None:
    run(
        """
def positions(x):
    count = tf.reduce_sum(tf.cast(tf.range(tf.shape(x)[1]), tf.int64))
    for _ in range(8):
        x = tf.tanh(x + 0.1)
    return x * tf.cast(count, tf.float32)

spec = [tf.TensorSpec([None, None], tf.float32)]
captured, plain = both_ways(tf.function(on_gpu(positions), input_signature=spec))
for length in (16, 11, 7) * 6:
    x = tf.constant(floats(3, length))
    check(np.allclose(captured(x), plain(x), rtol=1e-4), f"{length}: {captured(x)} {plain(x)}")
check(replayed() > 5, str(tf.cuda.capture_report()))
""",
        TF_MULTI_STREAM_CAPTURE_LENGTHS="16",
    )


def test_an_assert_on_drawn_numbers() -> None:
    """It fails where it fails without capture, and no call draws twice."""
    run(
        """
def calls(mode):
    tf.random.set_seed(1)

    def draw(x):
        drawn = tf.random.uniform([2], seed=7)
        tf.debugging.Assert(tf.reduce_all(drawn < 0.8), ["too large"])
        return layers(x) * 0 + drawn[0]

    function, found = tf.cuda.captured(mode=mode)(on_gpu(draw)), []
    for _ in range(24):
        try:
            found.append(bits(function(floats(4, 4))))
        except tf.errors.InvalidArgumentError:
            found.append("failed")
    return found

expected = calls("off")
check(5 < expected.count("failed") < 19, str(expected.count("failed")))
check(calls("auto") == expected, str(expected))
""",
        capture="marked",
    )


def test_two_gpus_that_exchange_values() -> None:
    """A piece takes all that it takes before it gives anything: two such would wait for ever."""
    run(
        """
import faulthandler
faulthandler.dump_traceback_later(100, exit=True)
w = floats(4, 4)

def exchange(a, b):
    with tf.device("/GPU:0"):
        y = layers(a, w)
    with tf.device("/GPU:1"):
        x = layers(b, w)
    with tf.device("/GPU:0"):
        p = layers(x + 1.0, w)
    with tf.device("/GPU:1"):
        q = layers(y + 1.0, w)
    return p, q

def one_way(a, b):
    with tf.device("/GPU:0"):
        y = layers(a, w)
    with tf.device("/GPU:1"):
        return layers(layers(b, w) + y, w), tf.where(b > 0)

with tf.device("/GPU:0"):
    a = tf.constant(floats(4, 4))
with tf.device("/GPU:1"):
    b = tf.constant(floats(4, 4))
for body in exchange, one_way:
    function = tf.function(body, autograph=False)
    expected = [r.numpy() for r in body(a, b)]
    for step in range(10):
        found = [r.numpy() for r in function(a, b)]
        same = [np.allclose(f, e) for f, e in zip(found, expected, strict=True)]
        check(all(same), f"step {step} of {body.__name__}: {same}")
check(total("pieces_replayed") > 3, str(tf.cuda.capture_report()))
""",
        groups=1,
        TF_MULTI_STREAM_EMULATED_GPUS="2",
    )


def test_denormal_numbers() -> None:
    """Captured or not, they count as zero, on the host's threads as on those of a step."""
    run(
        """
tiny = tf.constant([1e-40, 1.0, -1e-40], tf.float32)
expect("denormal", on_gpu(lambda x: (x * 1.0, tf.math.xlogy(x * 2.0, tf.abs(x)))), tiny)
""",
        groups=1,
    )


def test_integers_that_a_function_returns() -> None:
    """Of functions as users write them: no other function around them."""
    run(
        """
def body(x, i):
    return x * 2.0 + 1.0, i * 3 + 1, tf.bitcast(x, tf.int32), tf.shape(x)

function = tf.function(on_gpu(body))
with tf.device(GPU):
    for call in range(10):
        x, i = floats(3, 4), rng.integers(-(2**31), 2**31, (3, 4)).astype(np.int32)
        with np.errstate(over="ignore"):
            expected = x * 2 + 1, i * 3 + 1, x.view(np.int32), (3, 4)
        for found, right in zip(function(x, i), expected, strict=True):
            check(np.array_equal(found, right), f"call {call}: {found}")
check(replayed() > 3, str(tf.cuda.capture_report()))
"""
    )


def test_integers_that_a_training_returns() -> None:
    """They are there when the call returns; on a GPU the step would take longer than the call."""
    run(
        """
steps, large = variable(), variable(256, 256)

def train(x):
    y = x
    for _ in range(20):
        y = tf.tanh(y @ large + x)
    large.assign_add(y * 1e-3)
    steps.assign_add(1.0 + tf.reduce_max(y) * 0.0)
    return tf.cast(steps, tf.int32) * 3

function = tf.function(on_gpu(train))
with tf.device(GPU):
    x = tf.constant(floats(256, 256))
    for step in range(1, 31):
        found = int(function(x))
        check(found == 3 * step, f"step {step}: {found}")
check(replayed() > 10, str(tf.cuda.capture_report()))
"""
    )


def test_nothing_is_captured_while_tensorflow_prints_tensors() -> None:
    """It waits for the GPU in each op, which ends a capture, and then the process."""
    run(
        """
expect("printed", on_gpu(layers), floats(4, 4), captured=False)
required = tf.cuda.captured(mode="require")(on_gpu(layers))
fails(tf.errors.FailedPreconditionError, lambda: required(floats(4, 4)), "TF_GPU_DEBUG_OPS_TO_LOG")
""",
        TF_GPU_DEBUG_OPS_TO_LOG="MatMul",
    )


def test_memory_that_recordings_keep_for_variables_is_given_back() -> None:
    """A new value for each variable, as from a checkpoint, fits where it does without capture."""
    run(
        """
with tf.device(GPU):
    variables = [tf.Variable(tf.fill([200_000, 64], float(i))) for i in range(6)]
    x = tf.ones([64, 1])

@tf.function(autograph=False)
def sums(x):
    with tf.device(GPU):
        return [tf.reduce_sum(tf.matmul(v, x)) for v in variables]

with tf.cuda.stream_group(1):
    for _ in range(8):
        sums(x)
check(replayed() > 0, str(tf.cuda.capture_report()))
for new in range(2):
    for i, v in enumerate(variables):
        with tf.device(GPU):
            v.assign(tf.fill([200_000, 64], float(i + new)))
    for i, found in enumerate(sums(x)):
        check(float(found) == 200_000 * 64 * (i + new), f"{i}: {found}")
""",
        groups=8,
    )
