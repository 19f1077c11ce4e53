# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured steps give the results of the first steps, which ran uncaptured.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

from multistream.testing import kit

# Each case: a name, inputs by placeholder, and a function of the inputs. `expect` compares the bits
# of later steps with those of the first ones.
HELPERS = """
rng = np.random.default_rng(1)

def floats(*shape, dtype=np.float32):
    return rng.normal(0, 1, shape).astype(dtype)

def positive(*shape):
    return rng.uniform(0.1, 2.0, shape).astype(np.float32)

def expect(name, feeds, model, captured=True, runs=12):
    with tf.Graph().as_default(), tf.device(GPU):
        inputs = [tf1.placeholder(f.dtype, [None, *f.shape[1:]]) for f in feeds[0]]
        outputs = model(*inputs)
        config = tf1.ConfigProto(allow_soft_placement=False)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf1.Session(config=config) as session:
            call = session.make_callable(outputs, inputs)
            before = sum(s.steps_replayed for s in tf.cuda.stream_stats())
            first = [call(*feed) for feed in feeds]
            for _ in range(runs):
                for feed, expected in zip(feeds, first):
                    for a, b in zip(tf.nest.flatten(call(*feed)), tf.nest.flatten(expected)):
                        check(np.asarray(a).tobytes() == np.asarray(b).tobytes(), name)
            replayed = sum(s.steps_replayed for s in tf.cuda.stream_stats()) - before
            # On both groups.
            right = replayed > runs if captured else replayed == 0
            why = "" if right else f": {tf.cuda.capture_report()}"
            check(right, f"{name}: {replayed} steps were replayed{why}")
"""


def run(code: str) -> None:
    """Runs code after HELPERS, with two groups whose steps are captured."""
    kit.run_checks(HELPERS + code, groups=2, TF_MULTI_STREAM_CAPTURE="auto")


def test_ops_of_one_input() -> None:
    run("""
x = [[floats(5, 7)], [floats(5, 7)]]
for op in (tf.abs, tf.asin, tf.asinh, tf.atan, tf.atanh, tf.math.ceil, tf.cos, tf.cosh, tf.nn.elu,
           tf.math.erf, tf.math.erfc, tf.exp, tf.math.expm1, tf.floor, tf.math.is_finite,
           tf.math.is_inf, tf.math.is_nan, tf.nn.leaky_relu, tf.negative, tf.ones_like, tf.nn.relu,
           tf.nn.relu6, tf.round, tf.math.rint, tf.nn.selu, tf.sigmoid, tf.sign, tf.sin, tf.sinh,
           tf.nn.softplus, tf.nn.softsign, tf.square, tf.tan, tf.tanh, tf.zeros_like, tf.identity,
           tf.stop_gradient, tf.nn.softmax, tf.nn.log_softmax):
    expect(op.__name__, x, op)
p = [[positive(5, 7)], [positive(5, 7)]]
for op in (tf.math.log, tf.math.log1p, tf.math.lgamma, tf.math.digamma, tf.math.reciprocal,
           tf.math.rsqrt, tf.sqrt, tf.acos, tf.acosh):
    expect(op.__name__, p, op)
for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.int64):
    expect(f"cast to {dtype}", x, lambda a: tf.cast(tf.cast(a, dtype), tf.float32))
""")


def test_ops_of_more_inputs() -> None:
    run("""
xy = [[floats(5, 7), floats(5, 7)] for _ in range(2)]
for op in (tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum, tf.equal,
           tf.not_equal, tf.less, tf.less_equal, tf.greater, tf.greater_equal,
           tf.math.divide_no_nan, tf.math.squared_difference, tf.math.floormod,
           tf.math.floordiv, tf.math.multiply_no_nan, tf.math.atan2):
    expect(op.__name__, xy, op)
expect("add_n", xy, lambda a, b: tf.add_n([a, b, a]))
expect("where", xy, lambda a, b: tf.where(a > b, a, b))
expect("logical", xy,
       lambda a, b: tf.logical_not(tf.logical_or(a > b, tf.logical_and(a > 0, b > 0))))
expect("clip", xy,
       lambda a, b: tf.raw_ops.ClipByValue(t=a, clip_value_min=-0.5, clip_value_max=0.5) + b)
pq = [[positive(5, 7), positive(5, 7)] for _ in range(2)]
for op in (tf.pow, tf.math.xlogy, tf.math.xdivy):
    expect(op.__name__, pq, op)
""")


def test_products_in_all_types() -> None:
    run("""
for dtype in (np.float32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype):
    w = floats(16, 24, dtype=dtype)
    expect(f"matmul {dtype.__name__}", [[floats(8, 16, dtype=dtype)] for _ in range(2)],
           lambda x: tf.nn.bias_add(tf.matmul(x, w), w[0]))
    expect(f"batch_matmul {dtype.__name__}", [[floats(3, 8, 16, dtype=dtype)] for _ in range(2)],
           lambda x: tf.matmul(x, tf.constant(floats(3, 16, 4, dtype=dtype))))
big = floats(512, 512)
expect("large matmul", [[floats(256, 512)] for _ in range(2)],
       lambda x: tf.matmul(tf.matmul(x, big), big))
expect("vector", [[floats(1, 512)] for _ in range(2)], lambda x: tf.matmul(x, big))
""")


def test_convolutions_and_what_goes_with_them() -> None:
    run("""
images = [[floats(4, 16, 16, 8)] for _ in range(2)]
def expect_image(name, model): expect(name, images, model)
filters = floats(3, 3, 8, 16)
expect_image("conv", lambda x: tf.nn.conv2d(x, filters, 1, "SAME"))
expect_image("strides", lambda x: tf.nn.conv2d(x, filters, 2, "VALID"))
expect_image("dilated", lambda x: tf.nn.conv2d(x, filters, 1, "SAME", dilations=2))
expect_image("1 x 1", lambda x: tf.nn.conv2d(x, filters[:1, :1], 1, "VALID"))
expect_image("conv, bias, relu", lambda x: tf.nn.relu(
    tf.nn.bias_add(tf.nn.conv2d(x, filters, 1, "SAME"), filters[0, 0, 0])))
for dtype in (np.float16, np.float64):
    expect(f"conv {dtype.__name__}", [[floats(2, 8, 8, 8, dtype=dtype)] for _ in range(2)],
           lambda x: tf.nn.conv2d(x, filters.astype(dtype), 1, "SAME"))
expect_image("depthwise",
             lambda x: tf.nn.depthwise_conv2d(x, filters[..., :2], [1, 1, 1, 1], "SAME"))
expect_image("transposed", lambda x: tf.nn.conv2d_transpose(
    x, floats(3, 3, 4, 8), [tf.shape(x)[0], 32, 32, 4], 2))
expect("1 dimension", [[floats(4, 32, 8)] for _ in range(2)],
       lambda x: tf.nn.conv1d(x, filters[0], 1, "SAME"))
expect("3 dimensions", [[floats(2, 8, 8, 8, 4)] for _ in range(2)],
       lambda x: tf.nn.conv3d(x, floats(3, 3, 3, 4, 8), [1] * 5, "SAME"))
expect("pools of 3 dimensions", [[floats(2, 8, 8, 8, 4)] for _ in range(2)],
       lambda x: [tf.nn.max_pool3d(x, 2, 2, "VALID"), tf.nn.avg_pool3d(x, 2, 2, "SAME")])
expect_image("pools",
             lambda x: [tf.nn.max_pool2d(x, 3, 2, "SAME"), tf.nn.avg_pool2d(x, 2, 2, "VALID")])
scale, offset, mean = filters[0, 0, :, 0], filters[0, 0, :, 1], filters[0, 1, :, 0]
expect_image("batch norm", lambda x: tf1.nn.fused_batch_norm(
    x, scale, offset, mean, filters[0, 1, :, 1] ** 2 + 1, is_training=False)[0])
expect_image("resize", lambda x: tf.image.resize(x, [20, 24]))
expect_image("depth and space", lambda x: tf.nn.depth_to_space(tf.nn.space_to_depth(x, 4), 2))
expect_image("mirror", lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]], "REFLECT"))
expect_image("two layers", lambda x: tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(
    tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME")), floats(3, 3, 16, 16), 2, "SAME")), [1, 2]))
""")


def test_rarer_ops() -> None:
    run("""
x = [[floats(6, 8, 8)] for _ in range(2)]
def expect_same(name, model): expect(name, x, model)
expect_same("einsum", lambda a: tf.einsum("bij,bkj->ikb", a, a))
expect_same("top_k", lambda a: tf.math.top_k(a, 3)[0])
expect_same("gather_nd", lambda a: tf.gather_nd(a, tf.constant([[0, 1], [1, 2], [1, 1]], tf.int64)))
expect_same("band", lambda a: tf.linalg.band_part(a, 1, 2))
expect_same("l2_loss", tf.nn.l2_loss)
expect_same("bits", lambda a: tf.bitwise.bitwise_xor(
    tf.bitcast(tf.cast(a, tf.float64), tf.int64), tf.constant(5, tf.int64)))
expect_same("complex", lambda a: [tf.math.real(tf.complex(a, a + 1.0) * tf.complex(a, a)),
                                  tf.abs(tf.complex(a, a))])
""")


def test_reductions_and_scans() -> None:
    run("""
x = [[floats(6, 5, 4)], [floats(6, 5, 4)]]
for op in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod):
    for axis in (None, 0, 1, -1, [0, 2]):
        expect(f"{op.__name__} {axis}", x, lambda a: op(a, axis=axis))
expect("large sum", [[floats(4096, 64)] for _ in range(2)],
       lambda a: [tf.reduce_sum(a), tf.reduce_mean(a, 0)])
expect("any, all", x, lambda a: [tf.reduce_any(a > 2, 1), tf.reduce_all(a > -2)])
expect("argmax, argmin", x, lambda a: [tf.argmax(a, 1), tf.argmin(a, -1)])
expect("scans", x, lambda a: [tf.cumsum(a, 1), tf.math.cumprod(a, 0, exclusive=True, reverse=True)])
""")


def test_what_moves_and_shapes() -> None:
    run("""
x = [[floats(6, 8)], [floats(6, 8)]]
def expect_same(name, model): expect(name, x, model)
expect_same("concat of 24", lambda a: tf.concat([a * i for i in range(24)], 1))
expect_same("stack of 20", lambda a: tf.stack([a + i for i in range(20)], 1))
expect_same("split", lambda a: tf.split(a, 8, 1)[::-1])
expect_same("split unevenly", lambda a: tf.split(a, [1, 2, 5], 1)[::-1])
expect_same("unstack", lambda a: tf.unstack(tf.transpose(a)[:8])[::-1])
expect_same("reshape by shape", lambda a: tf.reshape(a, [tf.shape(a)[0] * 2, -1]))
expect_same("strided_slice", lambda a: a[1:5:2, ::-1])
expect_same("slice", lambda a: tf.slice(a, [1, 2], [3, -1]))
expect_same("transpose", tf.transpose)
expect_same("tile, pad", lambda a: tf.pad(tf.tile(a, [2, 3]), [[1, 1], [0, 2]]))
expect_same("expand, squeeze", lambda a: tf.squeeze(tf.expand_dims(a, 1) + 1.0, 1))
expect_same("reverse", lambda a: tf.reverse(a, [0]))
expect_same("broadcast", lambda a: tf.broadcast_to(a[:1], tf.shape(a)) + a)
expect_same("fill", lambda a: tf.fill(tf.shape(a), 2.0) * a)
expect_same("shape as a result", lambda a: [tf.shape(a), tf.size(a), tf.exp(a)])
ids = [[rng.integers(0, 50, (9, 3)).astype(np.int64)] for _ in range(2)]
table = floats(50, 16)
expect("gather", ids, lambda i: tf.reduce_sum(tf.gather(tf.constant(table), i), 1))
expect("one_hot", ids, lambda i: tf.one_hot(i, 50))
""")


def test_what_is_not_captured_runs_as_always() -> None:
    run("""
x = [[floats(5, 7)], [floats(5, 7)]]
expect("a value that the GPU's pad reads on the host", x,
       lambda a: tf.pad(a, [[1, 1], [0, 2]], constant_values=3.0), captured=False)
expect("where of values", x, lambda a: tf.where(a > 0), captured=False)
expect("cond", x,
       lambda a: tf1.cond(tf.reduce_sum(a) > 0, lambda: a + 1, lambda: a - 1), captured=False)
n = [[np.array([3, 4], np.int32), floats(2, 4)], [np.array([2, 4], np.int32), floats(2, 4)]]
expect("a shape that is fed", n, lambda s, a: tf.broadcast_to(a[:1], s) * 2, captured=False)
""")


def test_clients_shapes_and_sessions_side_by_side() -> None:
    run("""
def work(seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        with tf.Graph().as_default(), tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None, 16])
            w = rng.normal(0, 0.3, (16, 16)).astype(np.float32)
            y = x
            for _ in range(4):
                y = tf.tanh(tf.matmul(y, w))
            with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
                call = session.make_callable(y, [x])
                feeds = [rng.normal(0, 1, (n, 16)).astype(np.float32) for n in (1, 2, 3, 4) * 2]
                first = [call(f) for f in feeds]
                for _ in range(STEPS):
                    for feed, expected in zip(feeds, first):
                        check(call(feed).tobytes() == expected.tobytes(), "result")

run_threads([lambda i=i: work(i) for i in range(THREADS)])
stats = tf.cuda.stream_stats()
check(sum(s.steps_replayed for s in stats) > 100, "replayed")
check(sum(s.recordings for s in stats) == 0, "recordings left")
check(sum(s.recording_bytes for s in stats) == 0, "bytes left")
""")
