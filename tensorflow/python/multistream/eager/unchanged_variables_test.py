# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`numpy()` of a variable that stays as it is reads no more, and never gives an old value."""

import textwrap

from multistream.testing import kit

HELPERS = """
from tensorflow.python.ops import gen_resource_variable_ops as raw
from tensorflow.python.ops import resource_variable_ops

copies = [0]  # how often a variable was read with an op
read_variable_op = raw.read_variable_op
def counted(*arguments, **keywords):
    copies[0] += 1
    return read_variable_op(*arguments, **keywords)
raw.read_variable_op = counted

def variable(value=1, dtype=tf.int64, **options):
    with tf.device(GPU):
        return tf.Variable(value, dtype=dtype, **options)

def reads_no_more(v):
    for _ in range(4): v.numpy()
    before = copies[0]
    for _ in range(5): v.numpy()
    return copies[0] == before

def is_right(v, what):
    before = v.read_value().numpy()
    read = v.numpy()
    check(read.tobytes() == before.tobytes() and read.dtype == before.dtype
          and read.shape == before.shape, f"{what}: {read}, not {before}")
"""


def run(code: str, **options: str) -> None:
    kit.run_captured(HELPERS, textwrap.dedent(code), **options)


def test_is_known_after_three_reads() -> None:
    """Scalars and small vectors are, large ones, the CPU's and those that change are not."""
    run("""
        check(reads_no_more(variable()), "scalar")
        v = variable([1.0, float("nan"), -0.0], tf.float32)
        check(reads_no_more(v), "vector")
        is_right(v, "vector")
        given = v.numpy()
        given[:] = 7
        is_right(v, "a caller's own array")
        check(not reads_no_more(variable(np.zeros(100), tf.float32)), "large")
        with tf.device("/CPU:0"):
            check(not reads_no_more(tf.Variable(1)), "of the CPU")
        with tf.device("/CPU:0"):
            check(reads_no_more(v), "read in another device's scope")
        with tf.device(GPU):
            large = tf.ones([1 << 16])
        v.assign(large[:3])  # which may keep all of `large`
        is_right(v, "a slice")
        part = variable(np.ones(4), tf.float32)
        part.assign(tf.reshape(tf.tile(large, [2]), [-1, 4])[0:1][0])
        is_right(part, "a part")
        with tf.device(GPU):
            handle = raw.var_handle_op(dtype=tf.float32, shape=[2], shared_name="named")
        raw.assign_variable_op(handle, tf.constant([1.0, 2.0]))
        named = resource_variable_ops.BaseResourceVariable(
            handle=handle, dtype=tf.float32, shape=[2], trainable=False,
            handle_name="named", unique_id="named", in_graph_mode=False)
        check(not reads_no_more(named), "a resource that has a name")
        counter = variable()
        for i in range(20):
            counter.assign_add(1)
            check(counter.numpy() == i + 2, "counter")
        check(not reads_no_more(counter), "a counter")
        check(isinstance(variable().numpy(), np.int64), "type")
        with tf.GradientTape() as tape:
            check(reads_no_more(x := variable(2.0, tf.float32)), "on a tape")
        with tf.GradientTape() as tape:
            x.numpy()
        check(tape.watched_variables() == (x,), "a tape")
        with tf.Graph().as_default():
            fails(NotImplementedError, v.numpy, "eager")
    """)


def test_changes_are_seen() -> None:
    """However a variable is changed: by ops, functions, captured steps, optimizers, checkpoints."""
    run("""
        import os, tempfile
        @tf.function
        def adds(v):
            with tf.device(GPU):
                v.assign_add(tf.ones_like(v))
        @tf.function
        def scales_captured(v, x):
            with tf.device(GPU):
                v.assign(v * 0.5 + x)
                return tf.reduce_sum(v)
        def apply(v, optimizer):
            optimizer.jit_compile = False  # Keras of 2.13 has its optimizers compiled
            optimizer.apply_gradients([(tf.ones_like(v), v)])
        def rows(v):
            v.scatter_update(tf.IndexedSlices(tf.constant([9.0]), tf.constant([1])))
        def restored(v):
            checkpoint = tf.train.Checkpoint(v=v)
            path = checkpoint.write(os.path.join(tempfile.mkdtemp(), "c"))
            v.assign(v + 1)
            v.numpy()
            checkpoint.restore(path)
        def slices(v):
            v[1:2].assign([5.0])
        ways = {
            "assign": lambda v: v.assign(v + 1), "assign_add": lambda v: v.assign_add(v),
            "assign_sub": lambda v: v.assign_sub(v * 0.5), "function": adds,
            "captured": lambda v: [scales_captured(v, tf.ones([3])) for _ in range(12)],
            "SGD": lambda v: apply(v, tf.keras.optimizers.SGD(0.5)),
            "Adam": lambda v: apply(v, tf.keras.optimizers.Adam(0.5)),
            "rows": rows, "checkpoint": restored, "slice": slices,
            "the same value": lambda v: v.assign(v.read_value()),
            "another shape": lambda v: v.assign([2.0] * 4),
            "a shape, and back": lambda v: (v.assign([2.0] * 4), v.assign([1.0, 2.0, 3.0])),
        }
        for name, change in ways.items():
            any_shape = {"shape": tf.TensorShape(None)} if "shape" in name else {}
            v = variable([1.0, 2.0, 3.0], tf.float32, **any_shape)
            if name != "rows":
                check(reads_no_more(v), f"{name}: known at first")
            for again in range(2):
                change(v)
                is_right(v, name)
                for _ in range(3): is_right(v, name + ", later")
    """)


def test_random_programs_read_what_was_written() -> None:
    """Variables that are assigned, added to, by steps that are captured too, and read at random."""
    run("""
        @tf.function
        def step(v, x):
            with tf.device(GPU):
                v.assign_add(x * 2.0)
                return v * 1.0
        for seed in range(30):
            rng = np.random.default_rng(seed)
            variables = [variable(0.0, tf.float32) for _ in range(3)]
            values = [np.float32(0)] * 3
            for _ in range(150):
                i = rng.integers(3)
                v, x = variables[i], np.float32(rng.integers(4))
                how = rng.choice(["read"] * 12 + ["assign", "add", "step", "other"])
                if how == "assign":
                    v.assign(x); values[i] = x
                elif how == "add":
                    v.assign_add(x); values[i] += x
                elif how == "step":
                    step(v, tf.constant(x)); values[i] += x * 2
                elif how == "other":
                    j = rng.integers(3)
                    v.assign(variables[j]); values[i] = values[j]
                check(v.numpy() == values[i], f"seed {seed}: {how} {v.numpy()} {values[i]}")
    """)


def test_threads_read_while_others_write() -> None:
    """A reader never sees an older value than before, and the last once the writer has ended."""
    run("""
        import threading
        @tf.function
        def step(v):
            with tf.device(GPU):
                return v.assign_add(1)
        for way in ("ops", "captured"):
            for _ in range(10):
                v = variable(0)
                ended = threading.Event()
                def reads():
                    last = 0
                    while not ended.is_set():
                        for _ in range(5):
                            now = v.numpy()
                            check(now >= last, f"{now} after {last}")
                            last = now
                def writes():
                    for _ in range(60):
                        step(v) if way == "captured" else v.assign_add(1)
                        for _ in range(int(np.random.default_rng().integers(6))): v.numpy()
                    ended.set()
                run_threads([reads, reads, writes])
                check(v.numpy() == 60, f"{way}: {v.numpy()} at the end")
    """)


def test_captured_steps_have_their_variables_for_themselves() -> None:
    """Steps are replayed also if Python reads what they read, and what they change, each time."""
    run("""
        rate = variable(0.5, tf.float32)
        scale = variable(8.0, tf.float32)  # which the step changes to the same value
        added = variable([0.0, 0.0], tf.float32)
        @tf.function
        def step(x):
            with tf.device(GPU):
                added.assign_add(x * rate)
                scale.assign(scale * 1.0)
                return tf.reduce_sum(added) * scale
        want = np.zeros(2, np.float32)
        for i in range(60):
            if i % 9 == 8: rate.assign(float(i % 4))
            check(rate.numpy() == (0.5 if i < 8 else (i - (i - 8) % 9) % 4), f"rate {i}")
            check(scale.numpy() == 8, "scale")
            x = np.array([i % 3, 1], np.float32)
            want = want + x * rate.numpy()
            check(step(tf.constant(x)).numpy() == want.sum() * 8, f"result {i}")
            check((added.numpy() == want).all(), f"added {i}")
        check(replayed() >= 50, f"{replayed()} of 60 steps were replayed")
    """)


def test_the_variable_is_deleted_with_its_value() -> None:
    """What is known of a variable goes with the variable."""
    run("""
        import gc
        from tensorflow.python.multistream import loader
        deleted = []
        delete = loader.library.TFMS_DeleteKnown
        loader.library.TFMS_DeleteKnown = lambda known: (deleted.append(known), delete(known))
        v = variable()
        check(reads_no_more(v), "known")
        v.assign(2)
        v.numpy()
        check(len(deleted) == 1, "when it was changed")
        check(reads_no_more(v), "known again")
        del v
        gc.collect()
        check(len(deleted) == 2, "with the variable")
    """)


def test_without_groups_reads_are_stock() -> None:
    """Each read is TensorFlow's own."""
    kit.ok(
        f"import tensorflow as tf\n{HELPERS}"
        + """
v = tf.Variable(1)
for i in range(9): assert v.numpy() == 1
assert copies[0] == 9, copies
"""
    )
