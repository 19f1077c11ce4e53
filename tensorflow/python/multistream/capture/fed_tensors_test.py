# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any tensor of a session's graph may be fed, also one of a constant, which then has no effect.

A session's graph is placed, and its nodes changed, before it is known what is fed.
"""

from multistream.testing import kit

# Complex gradients have no kernel for GPUs: their constants are taken on the host.
CODE = """
import random
from tensorflow.python.ops import gen_math_ops

SIZE = 4
host = tf1.ConfigProto(device_count={"GPU": 0})
ops = {
    tf.int32: [
        lambda i, f, c: i + 1,
        lambda i, f, c: tf.math.floormod(i, SIZE),
        lambda i, f, c: tf.reverse(i, [0]),
        lambda i, f, c: tf.fill([SIZE], tf.shape(f)[0]),
        lambda i, f, c: tf.concat([i[2:], i[:2]], 0),
    ],
    tf.float32: [
        lambda i, f, c: tf.tanh(f),
        lambda i, f, c: tf.gather(f, tf.math.floormod(i, SIZE)),
        lambda i, f, c: f * tf.cast(i, tf.float32),
        lambda i, f, c: tf.math.real(c) + f,
        lambda i, f, c: gen_math_ops.tanh_grad(tf.tanh(f), f),
    ],
    tf.complex64: [
        lambda i, f, c: tf.complex(f, tf.sin(f)),
        lambda i, f, c: gen_math_ops.tanh_grad(c, c + 1),
        lambda i, f, c: gen_math_ops.sigmoid_grad(c, c),
        lambda i, f, c: c * 0.5,
    ],
}

def value(dtype, rng):
    if dtype == tf.int32:
        return rng.integers(-3, 9, SIZE).astype(np.int32)
    drawn = rng.normal(0, 0.7, SIZE).astype(np.float32)
    return (drawn + 1j * drawn[::-1]).astype(np.complex64) if dtype == tf.complex64 else drawn

def program(seed):
    r, rng = random.Random(seed), np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        there = {dtype: [tf1.placeholder(dtype, [SIZE]), tf.constant(value(dtype, rng))]
                 for dtype in ops}
        given = [tensors[0] for tensors in there.values()]
        for _ in range(16):
            dtype = r.choice(list(ops))
            taken = [r.choice(there[x]) for x in ops]
            there[dtype].append(r.choice(ops[dtype])(*taken))
        every = sum(there.values(), [])
        with tf1.Session(graph=graph) as session, tf1.Session(graph=graph, config=host) as right:
            for _ in range(3):
                fed = {*(x.ref() for x in given), *(x.ref() for x in r.sample(every, 3))}
                fed = sorted((x.deref() for x in fed), key=lambda x: x.name)
                fetched = r.sample([x for x in every if not any(x is y for y in fed)], 4)
                for _ in range(5):
                    feeds = {x: value(x.dtype, rng) for x in fed}
                    found = session.run(fetched, feeds)
                    for x, a, b in zip(fetched, found, right.run(fetched, feeds)):
                        right_one = np.allclose(a, b, 1e-3, 1e-3)
                        names = [y.name for y in fed]
                        check(right_one, "a result" if right_one
                              else f"{x.name} of program {seed} with {names}: {a}, not {b}")
"""


def test_constants_and_other_tensors_that_are_fed() -> None:
    count = 20 * kit.PROGRAMS
    kit.run_captured(
        CODE,
        f"""
before = replayed()
for seed in range({count}):
    program(seed)
check(replayed() - before > {count}, f"{{replayed() - before}} replays")
""",
        groups=2,
        capture="auto",
    )
