# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.serving_callable` on stream groups: from many threads, beside variables that change."""

import textwrap

import pytest

from multistream.testing import kit

GROUPS = """
w0 = floats(64, 32)
with tf.device(GPU):
    w, ids = tf.Variable(w0), tf.constant(w0)

@tf.function(input_signature=[tf.TensorSpec([None, 64]), tf.TensorSpec([None], tf.int64)])
def f(x, i):
    with tf.device(GPU):
        y = tf.tanh(x @ w)
        return {"y": y, "g": tf.gather(ids, i), "n": tf.shape(y), "x": x}

serve = tf.cuda.serving_callable(f)

given = [(x, np.arange(k, dtype=np.int64)) for k, x in enumerate(batches())]
expected = [bits(f(*arguments)) for arguments in given]
"""


def run(code: str, capture: str = "", **environment: str) -> None:
    kit.run_captured(GROUPS, textwrap.dedent(code), groups=4, capture=capture, **environment)


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_threads(capture: str) -> None:
    """From many threads at once, with and without a device, the bits are those of the function."""
    run(
        """
        def client(k):
            for i in range(STEPS):
                at = (i + k) % len(given)
                with tf.device(GPU if k % 2 else None):
                    check(bits(serve(*given[at])) == expected[at], "result")

        run_threads([lambda k=k: client(k) for k in range(2 * THREADS)])
        check(all(s.steps_started > 0 for s in tf.cuda.stream_stats()), "all groups")
        for _ in range(40):
            check(bits(serve(*given[0])) == expected[0], "one thread")
        captured = os.environ["TF_MULTI_STREAM_CAPTURE"] == "auto"
        check((replayed() > 0) == captured, f"replayed {replayed()}")
        """,
        capture,
    )


def test_a_program_ends_while_daemon_threads_call() -> None:
    """Python ends a daemon thread when it takes the GIL, which is in the middle of a call."""
    code = """
def client():
    while True:
        serve(*given[0])

for _ in range(2 * THREADS):
    threading.Thread(target=client, daemon=True).start()
time.sleep(0.1)
print("the end")
"""
    done = kit.python(
        ["-c", kit.PROLOGUE + kit.CAPTURE_HELPERS + GROUPS + code],
        kit.environment(4),
        timeout=300,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the end"]), done.stderr


def test_pinned_to_a_group() -> None:
    run("""
        for group in range(4):
            before = [s.steps_started for s in tf.cuda.stream_stats()]
            with tf.cuda.stream_group(group):
                for _ in range(5):
                    check(bits(serve(*given[1])) == expected[1], "result")
            ran = [s.steps_started - b for s, b in zip(tf.cuda.stream_stats(), before)]
            check(ran == [5 * (i == group) for i in range(4)], f"{group}: {ran}")
        """)


def test_a_result_leaves_the_gpu_in_the_step() -> None:
    """No copy of the result is left to do after the step."""
    kit.ok(
        """
        import numpy as np
        import tensorflow as tf
        from tensorflow.python.eager import context

        @tf.function(input_signature=[tf.TensorSpec([4, 8])])
        def f(x):
            return tf.tanh(x), x

        ctx = context.context()
        ctx.enable_graph_collection()
        with tf.device("/GPU:0"):
            tf.cuda.serving_callable(f)(np.ones((4, 8), np.float32))
        ran = ctx.export_run_metadata().function_graphs[-1].partition_graphs
        ops = {node.op for graph in ran for node in graph.node if "GPU" in node.device}
        assert {"Tanh", "_Send"} <= ops, ops
        assert "_Retval" not in ops, ops
        """,
        **kit.environment(4),
    )


@pytest.mark.parametrize("kind", ["serving", "function"])
def test_a_call_does_not_wait_for_those_of_other_groups(kind: str) -> None:
    kit.run_checks(f"""
        width = {8192 if kit.ON_GPU else 256}

        @tf.function(input_signature=[tf.TensorSpec([])], autograph=False)
        def much(scale):
            with tf.device(GPU):
                x = tf.fill([width, width], scale / width)
                next_one = lambda i, y: (i + 1, y @ x)
                return tf.while_loop(lambda i, _: i < 500, next_one, (0, x))[1][0]

        @tf.function(input_signature=[tf.TensorSpec([4, 8])], autograph=False)
        def little(x):
            with tf.device(GPU):
                return tf.tanh(x)

        x = np.ones((4, 8), np.float32)
        if {kind!r} == "serving":
            little = tf.cuda.serving_callable(little)
        else:
            x = tf.constant(x)
        def called():
            return np.asarray(little(x))
        def do_much():
            with tf.cuda.stream_group(1):
                much(tf.constant(1.0)).numpy()
            done.append(True)

        done, waited = [], 0
        do_much()
        with tf.cuda.stream_group(2):
            expected = called()
            for _ in range(3):  # once it may be the machine
                done.clear()
                thread = threading.Thread(target=do_much)
                thread.start()
                while not (tf.cuda.stream_stats()[1].steps_running or done):
                    pass
                got = called()
                waited += bool(done)
                check(got.tobytes() == expected.tobytes(), "result")
                thread.join()
        check(waited < 3, "it has waited")
        """)


def test_no_memory_is_lost() -> None:
    """Makes 8,000 results, copies of arguments and errors, so that a leak would show."""
    kit.ok("""
        import resource
        import numpy as np
        import tensorflow as tf

        @tf.function(input_signature=[tf.TensorSpec([None, 256])])
        def f(x):
            tf.debugging.assert_less(tf.shape(x)[0], 9, message="too many")
            return x + 1.0, tf.boolean_mask(x, x[:, 0] > 0)

        serve = tf.cuda.serving_callable(f)
        x = [np.random.RandomState(i).randn(8, 256).astype(np.float32) for i in range(10)]
        bad = np.zeros((9, 256), np.float32)

        def calls(n):
            for i in range(n):
                serve(x[i % 10])
                if i % 20 == 0:
                    try:
                        serve(bad)
                        raise SystemExit("no error")
                    except tf.errors.InvalidArgumentError:
                        pass

        def used():
            with open("/proc/self/statm") as statm:
                return int(statm.read().split()[1]) * resource.getpagesize() / 2**20

        calls(1500)
        before = used()
        calls(8000)
        after = used()
        assert after - before < 8, (before, after)
        """)
