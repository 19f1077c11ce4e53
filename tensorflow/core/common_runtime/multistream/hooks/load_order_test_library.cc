// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A library with a function of TensorFlow's name, for load_order_test.

#include <cstdlib>

void AnotherNewExecutor() asm(
    "_ZN10tensorflow11NewExecutorERKNSt7__cxx1112basic_stringIcSt11char_"
    "traitsIcESaIcEEERKNS_19LocalExecutorParamsERKNS_5GraphEPSt10unique_ptrINS_"
    "8ExecutorESt14default_deleteISF_EE");

void AnotherNewExecutor() { std::abort(); }
