# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured steps give the results of the first steps, which ran uncaptured."""

import pytest

from multistream.testing.kit import run_captured

# `expect_ops` runs a session's step with the models' results. It compares the bits of later steps
# with those of the first ones.
HELPERS = """
def expect_ops(name, shapes, *models, dtype=np.float32, make=floats, captured=True, runs=12):
    feeds = [[make(*shape).astype(dtype) for shape in shapes] for _ in range(2)]
    with tf.Graph().as_default(), tf.device(GPU):
        inputs = [tf1.placeholder(f.dtype, [None, *f.shape[1:]]) for f in feeds[0]]
        outputs = [model(*inputs) for model in models]
        config = tf1.ConfigProto(allow_soft_placement=False)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf1.Session(config=config) as session:
            call = session.make_callable(outputs, inputs)
            before = replayed()
            first = [bits(call(*feed)) for feed in feeds]
            for _ in range(runs):
                for feed, expected in zip(feeds, first):
                    found = bits(call(*feed))
                    wrong = [i for i, bit in enumerate(expected) if found[i] != bit]
                    check(not wrong, f"{name}: results {wrong}")
            count = replayed() - before
            right = count > runs if captured else count == 0  # on both groups
            check(right, right or f"{name}: {count} replays: {tf.cuda.capture_report()}")

def positive(*shape):
    return rng.uniform(0.1, 2.0, shape)

def some_ids(*shape):
    return rng.integers(0, 50, shape)
"""

ELEMENTWISE = """
expect_ops("one input", [(5, 7)], *(
    tf.abs, tf.asin, tf.asinh, tf.atan, tf.atanh, tf.math.ceil, tf.cos, tf.cosh, tf.nn.elu,
    tf.math.erf, tf.math.erfc, tf.exp, tf.math.expm1, tf.floor, tf.math.is_finite, tf.math.is_inf,
    tf.math.is_nan, tf.nn.leaky_relu, tf.negative, tf.ones_like, tf.nn.relu, tf.nn.relu6, tf.round,
    tf.math.rint, tf.nn.selu, tf.sigmoid, tf.sign, tf.sin, tf.sinh, tf.nn.softplus,
    tf.nn.softsign, tf.square, tf.tan, tf.tanh, tf.zeros_like, tf.identity, tf.stop_gradient,
    tf.nn.softmax, tf.nn.log_softmax, tf.nn.l2_loss),
    *[lambda a, dtype=dtype: tf.cast(tf.cast(a, dtype), tf.float32)
      for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.int64)],
    lambda a: tf.bitwise.bitwise_xor(
        tf.bitcast(tf.cast(a, tf.float64), tf.int64), tf.constant(5, tf.int64)),
    lambda a: tf.math.real(tf.complex(a, a + 1.0) * tf.complex(a, a)),
    lambda a: tf.abs(tf.complex(a, a)))
expect_ops("a positive input", [(5, 7)], tf.math.log, tf.math.log1p, tf.math.lgamma,
           tf.math.digamma, tf.math.reciprocal, tf.math.rsqrt, tf.sqrt, tf.acos, tf.acosh,
           make=positive)
expect_ops("more inputs", [(5, 7), (5, 7)], *(
    tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum, tf.equal, tf.not_equal,
    tf.less, tf.less_equal, tf.greater, tf.greater_equal, tf.math.divide_no_nan,
    tf.math.squared_difference, tf.math.floormod, tf.math.floordiv, tf.math.multiply_no_nan,
    tf.math.atan2),
    lambda a, b: tf.add_n([a, b, a]),
    lambda a, b: tf.where(a > b, a, b),
    lambda a, b: tf.logical_not(tf.logical_or(a > b, tf.logical_and(a > 0, b > 0))),
    lambda a, b: tf.raw_ops.ClipByValue(t=a, clip_value_min=-0.5, clip_value_max=0.5) + b)
expect_ops("positive inputs", [(5, 7), (5, 7)], tf.pow, tf.math.xlogy, tf.math.xdivy,
           tf.math.xlog1py, tf.math.igamma, tf.math.igammac, tf.math.nextafter,
           lambda a, b: tf.math.zeta(a + 1.5, b), make=positive)
expect_ops("between -1 and 1", [(5, 7)], lambda a: tf.math.erfinv(tf.tanh(a)),
           lambda a: tf.math.ndtri(tf.sigmoid(a)),
           lambda a: tf.math.polygamma(1.0, tf.abs(a) + 1.0),
           lambda a: tf.bitwise.left_shift(tf.cast(a * 9.0, tf.int64), tf.constant(3, tf.int64)),
           lambda a: tf.bitwise.right_shift(tf.cast(a * 99.0, tf.int64), tf.constant(2, tf.int64)))
expect_ops("quantized", [(5, 7)], tf.quantization.fake_quant_with_min_max_args,
           lambda a: tf.quantization.fake_quant_with_min_max_vars(a, -1.0, 1.0),
           lambda a: tf.quantization.fake_quant_with_min_max_vars_per_channel(
               a, tf.constant(-positive(7), tf.float32), tf.constant(positive(7), tf.float32)))
"""

PRODUCTS = """
big, filters = floats(512, 512), floats(3, 3, 8, 16)
for dtype in (np.float32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype):
    w = floats(16, 24, dtype=dtype)
    expect_ops(f"products of {dtype.__name__}", [(8, 16), (3, 8, 16)],
               lambda x, y: tf.nn.bias_add(tf.matmul(x, w), w[0]),
               lambda x, y: tf.matmul(y, tf.constant(floats(3, 16, 4, dtype=dtype))), dtype=dtype)
for rows in (256, 1):
    expect_ops(f"{rows} rows", [(rows, 512)], lambda x: tf.matmul(tf.matmul(x, big), big))
scale, offset, mean, variance = filters[:2, 0, :, :2].transpose(0, 2, 1).reshape(4, 8)
expect_ops("images", [(4, 16, 16, 8)],
    *[lambda x, a=a: tf.nn.conv2d(x, filters, *a) for a in ((1, "SAME"), (2, "VALID"))],
    lambda x: tf.nn.conv2d(x, filters, 1, "SAME", dilations=2),
    lambda x: tf.nn.conv2d(x, filters[:1, :1], 1, "VALID"),
    lambda x: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filters, 1, "SAME"), filters[0, 0, 0])),
    lambda x: tf.nn.depthwise_conv2d(x, filters[..., :2], [1, 1, 1, 1], "SAME"),
    lambda x: tf.nn.conv2d_transpose(x, floats(3, 3, 4, 8), [tf.shape(x)[0], 32, 32, 4], 2),
    lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"),
    lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"),
    lambda x: tf1.nn.fused_batch_norm(x, scale, offset, mean, variance**2 + 1,
                                      is_training=False)[0],
    lambda x: tf.image.resize(x, [20, 24]),
    lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    lambda x: tf.batch_to_space(tf.space_to_batch(x, [2, 2], [[0, 0], [2, 2]]), [2, 2],
                                [[0, 0], [2, 2]]),
    lambda x: tf.nn.depth_to_space(tf.nn.space_to_depth(x, 4), 2),
    lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]], "REFLECT"))
for dtype in (np.float16, np.float64):
    expect_ops(f"images of {dtype.__name__}", [(2, 8, 8, 8)],
               lambda x: tf.nn.conv2d(x, filters.astype(dtype), 1, "SAME"), dtype=dtype)
expect_ops("1 dimension", [(4, 32, 8)], lambda x: tf.nn.conv1d(x, filters[0], 1, "SAME"))
expect_ops("3 dimensions", [(2, 8, 8, 8, 4)],
           lambda x: tf.nn.conv3d(x, floats(3, 3, 3, 4, 8), [1] * 5, "SAME"),
           lambda x: tf.nn.max_pool3d(x, 2, 2, "VALID"),
           lambda x: tf.nn.avg_pool3d(x, 2, 2, "SAME"))
"""

MOVES = """
expect_ops("reductions", [(6, 5, 4)],
    *[lambda a, op=op, axis=axis: op(a, axis=axis)
      for op in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod)
      for axis in (None, 0, 1, -1, [0, 2])],
    lambda a: [tf.reduce_any(a > 2, 1), tf.reduce_all(a > -2)],
    lambda a: [tf.argmax(a, 1), tf.argmin(a, -1), tf.math.top_k(a, 3)[0]],
    lambda a: [tf.cumsum(a, 1), tf.math.cumprod(a, 0, exclusive=True, reverse=True)],
    lambda a: [tf.einsum("bij,bkj->ikb", a, a), tf.linalg.band_part(a, 1, 2)],
    lambda a: [tf.math.cumulative_logsumexp(a, 1), tf.math.reduce_euclidean_norm(a, 2)],
    lambda a: [tf.linalg.diag(a), tf.linalg.diag_part(a), tf.linalg.set_diag(a, a[:, 0])],
    lambda a: [tf.linalg.tensor_diag(a[0, 0]), tf.linalg.tensor_diag_part(a[0, :4])],
    lambda a: tf.transpose(tf.complex(a, -a), [2, 0, 1], conjugate=True))
expect_ops("large sums", [(4096, 64)], tf.reduce_sum, lambda a: tf.reduce_mean(a, 0))
expect_ops("moves", [(6, 8)],
    lambda a: tf.concat([a * i for i in range(24)], 1),
    lambda a: tf.stack([a + i for i in range(20)], 1),
    lambda a: [tf.split(a, 8, 1)[::-1], tf.split(a, [1, 2, 5], 1)[::-1]],
    lambda a: tf.unstack(tf.transpose(a)[:8])[::-1],
    lambda a: tf.reshape(a, [tf.shape(a)[0] * 2, -1]),
    lambda a: [a[1:5:2, ::-1], tf.slice(a, [1, 2], [3, -1])],
    lambda a: tf.pad(tf.tile(a, [2, 3]), [[1, 1], [0, 2]]),
    lambda a: tf.squeeze(tf.expand_dims(a, 1) + 1.0, 1),
    lambda a: tf.reverse(a, [0]),
    lambda a: tf.broadcast_to(a[:1], tf.shape(a)) + a,
    lambda a: tf.fill(tf.shape(a), 2.0) * a,
    lambda a: tf.gather_nd(a, tf.constant([[0, 1], [1, 2], [1, 1]], tf.int64)),
    lambda a: [tf.shape(a), tf.size(a)])
table = floats(50, 16)
expect_ops("ids", [(9, 3)], lambda i: tf.reduce_sum(tf.gather(tf.constant(table), i), 1),
           lambda i: tf.one_hot(i, 50),
           lambda i: tf.ensure_shape(i, [None, 3]),
           lambda i: tf.scatter_nd(i[:, :1], tf.constant(table)[:9], [50, 16]),
           lambda i: [scatter(tf.constant(table), i[:1, :1], tf.constant(table)[:1])
                      for scatter in (tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_sub,
                                      tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min,
                                      tf.tensor_scatter_nd_update)],
           lambda i: [segment(tf.constant(table)[:9], i[:, 0], 50)
                      for segment in (tf.math.unsorted_segment_max, tf.math.unsorted_segment_min,
                                      tf.math.unsorted_segment_prod)],
           lambda i: tf.raw_ops.DenseBincount(
               input=i, size=tf.constant(50, tf.int64), weights=tf.constant([], tf.float32),
               binary_output=True),
           lambda i: tf.searchsorted(tf.sort(tf.transpose(tf.constant(table))[:9]),
                                     tf.cast(i, tf.float32) / 25.0 - 1.0),
           lambda i: tf.math.in_top_k(i[:, 0], tf.transpose(tf.constant(table))[:9], 5),
           make=some_ids, dtype=np.int64)
"""


@pytest.mark.parametrize("code", [ELEMENTWISE, PRODUCTS, MOVES], ids=range(3))
def test_ops(code: str) -> None:
    run_captured(HELPERS, code)


def test_what_is_computed_of_shapes() -> None:
    """As in a SavedModel, whose batch is of any size: TensorFlow computes some of it on the GPU."""
    run_captured("""
w = floats(5, 3)
with tf.device(GPU):
    table = tf.Variable(floats(50, 3))

def on_the_gpu(function):
    def placed(x):
        with tf.device(GPU):
            return function(x)
    return placed

def rows(name, function, *specs):
    signature = [tf.TensorSpec([None, *shape], dtype) for shape, dtype in specs]
    called = tf.function(function, input_signature=signature, autograph=False)
    for count in (3, 5):
        arguments = [floats(count, *shape) if dtype == tf.float32
                     else rng.integers(0, 50, [count, *shape]).astype(np.int32)
                     for shape, dtype in specs]
        plain = [np.asarray(x) for x in tf.nest.flatten(function(*arguments))]
        expect(name, called, *arguments)
        found = [x.numpy() for x in tf.nest.flatten(called(*arguments))]
        for x, y in zip(found, plain):
            check(x.shape == y.shape and np.allclose(x, y, atol=1e-3), f"{name}: as eagerly")

rows("tensordot", on_the_gpu(lambda x: tf.tensordot(x, w, 1) * 2.0), ([2, 5], tf.float32))
rows("rows of a size", on_the_gpu(lambda x: tf.reshape(
         x * 2.0, [-1, tf.cast(tf.reduce_prod(tf.shape(x, out_type=tf.int64)[1:]), tf.int32)])),
     ([2, 5], tf.float32))
rows("a larger size", on_the_gpu(lambda x: tf.tile(x, [tf.cast(tf.math.maximum(
         tf.size(x, tf.int64) // 5, 2), tf.int32), 1])), ([5], tf.float32))

# The ids are on the host, and so is their shape.
def with_types(ids):
    types = tf.fill([tf.shape(ids)[0], 4], 1)
    return tf.gather(table, ids) + tf.gather(table, types)
rows("a shape of ids", with_types, ([4], tf.int32))
""")
