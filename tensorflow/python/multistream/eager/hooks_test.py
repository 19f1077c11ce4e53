# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hash of a function's type is computed once for each call, and finds the right function."""

import textwrap

from multistream.testing import kit


def test_a_call_computes_one_hash() -> None:
    """Types, shapes, Python values and data sets still choose the traced function."""
    kit.run_checks(
        textwrap.dedent("""
        from tensorflow.core.function.polymorphism import function_type

        kept = function_type.FunctionType.__hash__
        computed = [0]
        def counting(self):
            computed[0] += "_multistream_hash" not in self.__dict__
            return kept(self)
        function_type.FunctionType.__hash__ = counting
        parameters = [0]
        of_parameter = function_type.Parameter.__hash__
        def counting_parameters(self):
            parameters[0] += 1
            return of_parameter(self)
        function_type.Parameter.__hash__ = counting_parameters

        traced = []
        @tf.function
        def f(x, y=2):
            traced.append(1)
            return tf.reduce_sum(x["a"]) * y
        def arguments(n, dtype):
            return {"a": tf.ones([n], dtype), "b": [tf.ones([n])] * 30}
        for n, dtype, y, want in (
            (2, tf.float32, 2, 4), (3, tf.float32, 2, 6), (2, tf.float64, 2, 4),
            (2, tf.float32, 3, 6),
        ):
            before = len(traced)
            for _ in range(3):
                check(f(arguments(n, dtype), y).numpy() == want, f"{n} {dtype} {y}")
            check(len(traced) == before + 1, "traced once")
            computed[0] = parameters[0] = 0
            f(arguments(n, dtype), y)
            check((computed[0], parameters[0]) == (1, 2), f"{computed} {parameters} computed")
        types = [function_type.FunctionType.from_callable(g)
                 for g in (lambda x: x, lambda x: 2 * x, lambda y: y, lambda x, y: y)]
        check(types[0] == types[1] and hash(types[0]) == hash(types[1]), "equal types")
        check(len({hash(t) for t in types}) == 3, "other types")
        """)
    )
