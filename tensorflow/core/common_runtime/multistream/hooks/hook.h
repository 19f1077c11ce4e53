// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do TensorFlow's functions call the runtime, if both are built from
// source? The patches in patches/RELEASE/source put these lines at the start of
// each function that the runtime replaces:
//
//   Result Function(Argument argument) {
//     if (auto* ours = multistream::Hook<&Function>::Take()) {
//       return ours(argument);
//     }
//
// source_hooks.cc sets `ours`. Its type comes from TensorFlow's own
// declaration, so that neither side compiles after that has changed. This file
// depends on nothing, because TensorFlow's lowest libraries include it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_HOOK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_HOOK_H_

#include <atomic>
#include <utility>

namespace tensorflow::multistream {

// The hook of a function, or of a member function, whose object is the first
// argument.
template <auto kFunction, typename Type = decltype(kFunction)>
class Hook;

// Common to all kinds of functions. Each hook's variables exist once in a
// process, even if caller and runtime are in different libraries.
template <auto kFunction, typename Result, typename... Arguments>
class HookOf {
 public:
  using Ours = Result(Arguments...);

  // From now on callers of the function get `ours`. Usable in a library's
  // static initializers, since the hook itself needs none.
  static void Set(Ours* ours) { ours_.store(ours, std::memory_order_release); }

  // Called by the hooked function: the replacement to call, or nullptr to run
  // the function's own code.
  static Ours* Take() {
    if (go_on_) {
      go_on_ = false;
      return nullptr;
    }
    return ours_.load(std::memory_order_acquire);
  }

  // For a function that cannot be patched: its callers call this instead.
  static Result Call(Arguments... arguments) {
    Ours* ours = ours_.load(std::memory_order_acquire);
    return ours != nullptr ? ours(std::forward<Arguments>(arguments)...)
                           : kFunction(std::forward<Arguments>(arguments)...);
  }

 protected:
  // This thread's next Take returns nullptr.
  static void GoOn() { go_on_ = true; }

 private:
  static inline std::atomic<Ours*> ours_{nullptr};
  static inline thread_local bool go_on_ = false;
};

// `ours` calls TensorFlow's own code through Stock. If that code calls the
// hooked function again, for another object, `ours` is called again.
template <auto kFunction, typename Result, typename... Arguments>
class Hook<kFunction, Result (*)(Arguments...)>
    : public HookOf<kFunction, Result, Arguments...> {
 public:
  static Result Stock(Arguments... arguments) {
    Hook::GoOn();
    return kFunction(std::forward<Arguments>(arguments)...);
  }
};

template <auto kFunction, typename Class, typename Result,
          typename... Arguments>
class Hook<kFunction, Result (Class::*)(Arguments...)>
    : public HookOf<kFunction, Result, Class*, Arguments...> {
 public:
  static Result Stock(Class* object, Arguments... arguments) {
    Hook::GoOn();
    return (object->*kFunction)(std::forward<Arguments>(arguments)...);
  }
};

template <auto kFunction, typename Class, typename Result,
          typename... Arguments>
class Hook<kFunction, Result (Class::*)(Arguments...) const>
    : public HookOf<kFunction, Result, const Class*, Arguments...> {
 public:
  static Result Stock(const Class* object, Arguments... arguments) {
    Hook::GoOn();
    return (object->*kFunction)(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_HOOK_H_
