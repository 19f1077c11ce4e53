// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Where does TensorFlow ask the runtime first, if both are built from source?
//
// The patches in patches/RELEASE/source put a line at the start of each
// function that the runtime takes the place of:
//
//   Result Function(Argument argument) {
//     if (auto* ours = multistream::Hook<&Function>::Take()) {
//       return ours(argument);
//     }
//
// and source_hooks.cc says what `ours` is. The type is that of TensorFlow's own
// declaration, so that neither side compiles when it has changed. TensorFlow's
// lowest libraries include this file: it depends on nothing.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_HOOK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_HOOK_H_

#include <atomic>
#include <utility>

namespace tensorflow {
namespace multistream {

// Of a function, or of a member function, which then is the first argument's.
template <auto kFunction, typename Type = decltype(kFunction)>
class Hook;

// What all kinds have. Each hook's variables exist once in a process, whichever
// libraries its two sides are in.
template <auto kFunction, typename Result, typename... Arguments>
class HookOf {
 public:
  using Ours = Result(Arguments...);

  // From now on TensorFlow's callers get `ours`. It needs no other
  // initialization: a library may do so while it is loaded.
  static void Set(Ours* ours) { ours_.store(ours, std::memory_order_release); }

  // For the function itself: what to call in its place; nullptr, if it is to go
  // on.
  static Ours* Take() {
    if (go_on_) {
      go_on_ = false;
      return nullptr;
    }
    return ours_.load(std::memory_order_acquire);
  }

  // For a function that cannot be changed, in the place of a call of it.
  static Result Call(Arguments... arguments) {
    Ours* ours = ours_.load(std::memory_order_acquire);
    return ours != nullptr ? ours(std::forward<Arguments>(arguments)...)
                           : kFunction(std::forward<Arguments>(arguments)...);
  }

 protected:
  // The next function of this hook that this thread enters goes on.
  static void GoOn() { go_on_ = true; }

 private:
  static inline std::atomic<Ours*> ours_{nullptr};
  static inline thread_local bool go_on_ = false;
};

// For `ours`, Stock is TensorFlow's function itself. Where that comes to call
// itself again, for another object, the hook is asked again.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_HOOK_H_
