# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""From its second call on, `tf.cuda.serving_callable` calls most functions without the eager layer.

Nothing else differs: results, errors and effects are those of the function.
"""

import textwrap

import pytest

from multistream.testing import kit

CALLS = """
import ctypes

is_known_direct = loader.library.TFMS_ServingIsDirect
is_known_direct.restype = ctypes.c_bool
is_known_direct.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

def is_direct(serve, device=None):
    return is_known_direct(serve._handle, device and device.encode())

def served(body, *specs):
    function = tf.function(body, input_signature=specs, autograph=False)
    return tf.cuda.serving_callable(function)

def check_served(serve, function, *arguments):
    expected = bits(function(*arguments))
    for call in range(12):
        check(bits(serve(*arguments)) == expected, f"call {call} of {serve}")

Spec = tf.TensorSpec
x = floats(8, 4)
"""


def run(code: str, capture: str = "off", groups: int = 2, **environment: str) -> None:
    calls = f"ON_GPU = {kit.ON_GPU}\n{CALLS}"
    kit.run_captured(calls, textwrap.dedent(code), groups=groups, capture=capture, **environment)


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_what_a_function_takes_and_gives(capture: str) -> None:
    """Of all types; also an argument, a constant, and one tensor twice, as results."""
    run(
        """
        with tf.device(GPU):
            w, table = tf.Variable(floats(4, 3)), tf.constant(floats(8, 2))

        @tf.function(input_signature=[Spec([None, 4]), Spec([None], tf.int32), Spec([], tf.int64)])
        def f(x, i, n):
            with tf.device(GPU):
                y = tf.tanh(x @ w)
                return {
                    "y": y, "again": y, "x": x, "i": i + 1, "n": n * 2, "rows": tf.shape(y)[0],
                    "gathered": tf.gather(table, i), "constant": tf.constant([1, 2]),
                    "is": y > 0, "half": tf.cast(y, tf.float16),
                }

        serve = tf.cuda.serving_callable(f)
        arguments = x, np.array([1, 2, 3], np.int32), np.int64(5)
        check_served(serve, f, *arguments)
        check(is_direct(serve), "direct")
        check_served(serve, f, x[:1], *arguments[1:])
        check((replayed() > 0) == (os.environ["TF_MULTI_STREAM_CAPTURE"] == "auto"), "replayed")
        w.assign(w * 2)
        check_served(serve, f, *arguments)
        """,
        capture,
    )


def test_each_device_scope_has_its_own_calls() -> None:
    run(
        """
        def f(x):
            return tf.tanh(x) + 1

        serve = served(f, Spec([None, 4]))
        for device in (GPU, "/CPU:0", GPU, "/CPU:0", "/GPU:0"):
            with tf.device(device):
                check_served(serve, tf.function(f), x)
        host = "/job:localhost/replica:0/task:0/device:"
        check(is_direct(serve, host + "GPU:0"), "on the GPU")
        check(not is_direct(serve, host + "CPU:0"), "on the CPU")
        started = [s.steps_started for s in tf.cuda.stream_stats()]
        with tf.device("/CPU:0"):
            serve(x)
        check([s.steps_started for s in tf.cuda.stream_stats()] == started, "no step on the GPU")
        """,
        groups=2,
    )


def test_what_needs_the_host_is_called_as_always() -> None:
    """Ops on the host, and captured tensors that the host's part takes from the GPU."""
    run("""
        with tf.device(GPU):
            ids = tf.constant([3, 1, 2])

        def g(i):
            with tf.device(GPU):
                return ids + i

        serve = served(g, Spec([3], tf.int32))
        check_served(serve, tf.function(g), np.array([1, 2, 3], np.int32))
        # A GPU's int32 tensors are on the host.
        check(is_direct(serve) == ON_GPU, "direct")

        def waits(x):
            with tf.device(GPU):
                y = tf.tanh(x)
            with tf.device("/CPU:0"), tf.control_dependencies([y]):
                z = tf.identity(x)
            with tf.device(GPU):
                return z * 2 + y

        serve = served(waits, Spec([None, 4]))
        check_served(serve, tf.function(waits), x)
        check(not is_direct(serve), "the host waits for the GPU")

        def f(x, words):
            with tf.device("/CPU:0"):
                lengths = tf.strings.length(words)
            with tf.device(GPU):
                return tf.tanh(x) * tf.cast(lengths, tf.float32)[:, None]

        function = tf.function(f)
        serve = served(f, Spec([None, 4]), Spec([None], tf.string))
        words = np.array(["a", "bc", ""] * 2 + ["d"] * 2, object)
        check_served(serve, function, x, words)
        check(not is_direct(serve), "not direct")
        """)


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_a_step_that_changes_a_variable_runs_once_for_each_call(capture: str) -> None:
    run(
        """
        with tf.device(GPU):
            sums = tf.Variable(np.zeros(4, np.float32))

        def f(x):
            with tf.device(GPU):
                return sums.assign_add(tf.reduce_sum(x, 0))

        serve = served(f, Spec([None, 4]))
        expected = np.zeros(4, np.float32)
        for i in range(20):
            expected = expected + (x * i).sum(0, dtype=np.float32)
            got = serve(x * np.float32(i))
            check(np.allclose(got, expected), f"{i}: {got} for {expected}")
            check(bits(sums) == bits(got), "the variable")
        check(is_direct(serve), "direct")
        """,
        capture,
    )


def test_an_error_has_the_same_type() -> None:
    """Its text names the op; the calls after it are right."""
    run("""
        w = floats(4, 3)

        def f(x):
            with tf.device(GPU):
                return tf.tanh(x) @ w

        def error_of(serve):
            try:
                serve(floats(8, 5))
            except Exception as error:
                return type(error), str(error)

        serve, other = served(f, Spec([None, None])), served(f, Spec([None, None]))
        as_always = error_of(other)
        check_served(serve, tf.function(f), x)
        check(is_direct(serve) and not is_direct(other), "one of the two is direct")
        got = error_of(serve)
        check(as_always is not None and got[0] is as_always[0], f"{got} for {as_always}")
        check("Matrix size-incompatible" in got[1] and "node matmul" in got[1], got[1])
        check_served(serve, tf.function(f), x)
        """)


def test_the_context_may_forget_the_function() -> None:
    """Also while other threads call it, and when the callable goes first."""
    run("""
        from tensorflow.python.eager import context

        def f(x):
            with tf.device(GPU):
                return tf.tanh(x)

        function = tf.function(f)
        serve = served(f, Spec([None, 4]))
        expected = bits(function(x))

        def client():
            for _ in range(STEPS):
                check(bits(serve(x)) == expected, "result")

        def forget():
            for _ in range(20):
                context.context().clear_kernel_cache()
                check_served(served(f, Spec([None, 4])), function, x)

        serve(x)
        run_threads([client, client, forget])
        check(is_direct(serve), "direct")
        del serve
        context.context().clear_kernel_cache()
        check_served(served(f, Spec([None, 4])), function, x)
        """)


def test_first_calls_of_many_threads() -> None:
    run("""
        def f(x):
            with tf.device(GPU):
                return tf.tanh(x)

        expected = bits(tf.function(f)(x))
        for _ in range(10):
            serve = served(f, Spec([None, 4]))
            start = threading.Barrier(THREADS)
            def client():
                start.wait()
                for _ in range(5):
                    check(bits(serve(x)) == expected, "result")
            run_threads([client] * THREADS)
            serve(x)
            check(is_direct(serve), "direct")
        """)


def test_a_call_in_a_call() -> None:
    """A function that calls Python runs on the host; what it calls may be served, too."""
    run("""
        def f(x):
            with tf.device(GPU):
                return tf.tanh(x)

        inner = served(f, Spec([None, 4]))

        def g(x):
            with tf.device("/CPU:0"):
                y = tf.numpy_function(inner, [x], tf.float32)
            with tf.device(GPU):
                return y + 1

        outer = served(g, Spec([None, 4]))
        expected = bits(tf.function(f)(x) + 1)
        for _ in range(4):
            check(bits(outer(x)) == expected, "result")
        """)


def test_first_calls_in_several_device_scopes() -> None:
    """Whatever other threads' first calls make at that time, each scope's calls run on its GPU."""
    run(
        """
        def steps_by_gpu():
            steps = collections.Counter()
            for s in tf.cuda.stream_stats():
                steps[s.gpu] += s.steps_started
            return steps

        def body(x):
            for _ in range(30):
                x = tf.tanh(x) + 1
            return x

        GPUS = 4
        for trial in range(12):
            serve = served(body, Spec([None, 4]))
            start = threading.Barrier(GPUS)

            def client(gpu):
                with tf.device(f"/GPU:{gpu}"):
                    start.wait()
                    time.sleep(rng.random() * 0.05 * gpu)
                    for _ in range(5):
                        serve(x)

            run_threads([functools.partial(client, gpu) for gpu in range(GPUS)])
            for gpu in range(GPUS):
                before = steps_by_gpu()
                with tf.device(f"/GPU:{gpu}"):
                    serve(x)
                ran = steps_by_gpu() - before
                check(ran == {gpu: 1}, "on its GPU")
                device = f"/job:localhost/replica:0/task:0/device:GPU:{gpu}"
                check(is_direct(serve, device), "direct")
        """,
        TF_MULTI_STREAM_EMULATED_GPUS="4",
    )


def test_first_calls_with_results_of_several_shapes() -> None:
    """Of two calls with equal arguments, each notes another shape of the results."""
    run("""
        def positive(x):
            with tf.device(GPU):
                return tf.boolean_mask(x, x > 0)

        serve = served(positive, Spec([None]))
        many = np.arange(1, 1001, dtype=np.float32)
        few = np.where(many > 3, 0, many)
        is_noted, may_go_on = threading.Event(), threading.Event()

        class Slow(dict):
            # A thread may lose the GIL after it has looked for a shape.
            def setdefault(self, key, value):
                is_new = key not in self
                found = super().setdefault(key, value)
                if is_new:
                    is_noted.set()
                    may_go_on.wait(20)
                return found

        serve._short = Slow()
        first = threading.Thread(target=serve, args=[few])
        first.start()
        is_noted.wait(20)
        other = threading.Thread(target=serve, args=[many])
        other.start()
        other.join()
        may_go_on.set()
        first.join()
        for given in (many, few, many):
            check(np.array_equal(serve(given), given[given > 0]), "result")
        fails(TypeError, lambda: serve(3.0, 4.0), "1 arguments")
        """)
