// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Entries that call a function through a table, for driver_waits_test: as in
// CUDA drivers of several releases, and of kinds that no driver has.

extern "C" {

__attribute__((visibility("hidden"))) int waits = 0;
__attribute__((visibility("hidden"))) int result_of_wait = 7;
__attribute__((visibility("hidden"))) void (*at_wait)() = nullptr;

__attribute__((visibility("hidden"))) int WaitForAll() {
  ++waits;
  if (at_wait != nullptr) at_wait();
  return result_of_wait;
}
__attribute__((visibility("hidden"))) int WaitForOne() { return 8; }

int Waits() { return waits; }
void SetResult(int result) { result_of_wait = result; }
void SetAtWait(void (*function)()) { at_wait = function; }
}

#define ENTRY(name, code) \
  asm(".text\n.globl " name "\n.type " name ", @function\n" name ":\n" code)
#define PLACE(name, function) \
  asm(".data\n.balign 8\n" name ": .quad " function "\n.text\n")
asm(".data\n.balign 8\nstate: .long 0\n.text\n");

PLACE("place_of_all", "WaitForAll");
PLACE("place_of_all_v2", "WaitForAll");
PLACE("place_of_one", "WaitForOne");

// As in driver release 535.
#define JUMP(place)                                     \
  "cmpl $0x321cba00, state(%rip)\n je 1f\n jmp *" place \
  "(%rip)\n"                                            \
  "1: movl $4, %eax\n ret\n"
// As in driver release 580. Bytes, because an assembler would make the branch a
// short one.
#define FRAME(place) FRAME_WITH(place, "")
#define FRAME_WITH(place, then)                                           \
  "pushq %rbp\n movq %rsp, %rbp\n pushq %r12\n subq $8, %rsp\n"           \
  "cmpl $0x321cba00, state(%rip)\n .byte 0x0f, 0x84\n .long 1f - . - 4\n" \
  "call *" place "(%rip)\n" then                                          \
  "2: addq $8, %rsp\n popq %r12\n popq %rbp\n ret\n"                      \
  "1: movl $4, %eax\n jmp 2b\n"
#define OTHER(place) "xorl %eax, %eax\n jmp *" place "(%rip)\n"

#if defined(KIND_frame)
ENTRY("cuCtxSynchronize", FRAME("place_of_all"));
ENTRY("cuStreamSynchronize", FRAME("place_of_one"));
#elif defined(KIND_jump)
ENTRY("cuCtxSynchronize", JUMP("place_of_all"));
ENTRY("cuCtxSynchronize_v2", JUMP("place_of_all_v2"));
ENTRY("cuStreamSynchronize", JUMP("place_of_one"));
#elif defined(KIND_other)
ENTRY("cuCtxSynchronize", OTHER("place_of_all"));
ENTRY("cuStreamSynchronize", JUMP("place_of_one"));
#elif defined(KIND_more)
ENTRY("cuCtxSynchronize", FRAME_WITH("place_of_all", "addl $1, %eax\n"));
ENTRY("cuStreamSynchronize", JUMP("place_of_one"));
#elif defined(KIND_shared)
ENTRY("cuCtxSynchronize", JUMP("place_of_all"));
ENTRY("cuStreamSynchronize", JUMP("place_of_all"));
#endif
