// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/testing/search/choices.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/seam.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/workers.h"

namespace tensorflow::multistream::search {
namespace {

constexpr int kLastOperations = 120;  // shown in a report

// An object's id is made of its task's id and the task's count of objects made
// before. So ids are the same in each execution, unless the objects that a task
// makes depend on the interleaving.
constexpr int64_t kMadeByOne = int64_t{1} << 32;

struct Operation {
  int task;
  const char* operation;
  Place place;
};

thread_local Task* this_task = nullptr;

// Learned about a program from its executions so far.
struct Knowledge {
  // Objects that more than one task has touched. Only operations on these are
  // points of choice.
  std::set<int64_t> shared;
  bool has_grown = false;
  bool all_are_shared = false;  // for replays
};

void RunTask(Task* task);

Workers* AllWorkers() {
  static auto* workers =
      new Workers(RunTask);  // never deleted: its threads never end
  return workers;
}

class Execution : public Program {
 public:
  Execution(Choices* choices, Knowledge* knowledge, const Limits& limits)
      : choices_(choices), knowledge_(knowledge), limits_(limits) {
    sem_init(&over_, 0, 0);
  }

  void Thread(std::string name, std::function<void()> body) override {
    Add(std::move(name), std::move(body), /*is_daemon=*/false);
  }
  void Daemon(std::string name, std::function<void()> body) override {
    Add(std::move(name), std::move(body), /*is_daemon=*/true);
  }

  void Run() override {
    // Daemons come after all threads, so that they are chosen last.
    std::stable_sort(tasks_.begin(), tasks_.end(), [](auto& a, auto& b) {
      return a->is_daemon < b->is_daemon;
    });
    for (size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i]->id = static_cast<int>(i);
      AllWorkers()->Start(tasks_[i].get());
    }
    is_running_ = true;
    GiveTurn(/*from=*/nullptr);
    Wait(&over_);
    is_over_ = true;
    for (auto& task : tasks_) {
      if (task->has_ended) continue;
      sem_post(&task->turn);
      Wait(&over_);
    }
    AllWorkers()->Rest();
  }

  // Called by tasks.
  void Touch(const Shared& object, const char* operation, Place place) {
    if (!Note(object, operation, place)) return;
    GiveTurn(this_task);
  }
  bool BlockUntil(const Shared& object, const std::function<bool()>& ready,
                  const char* operation, Place place, bool may_time_out) {
    const bool is_shared = Note(object, operation, place);
    if (is_over_) return false;
    if (!is_shared && ready()) return true;
    Task* task = this_task;
    task->ready = ready;
    task->may_time_out = may_time_out;
    task->timed_out = false;
    GiveTurn(task);
    task->ready = nullptr;
    return !is_over_ && !task->timed_out;
  }
  void Tell(const char* operation, Place place) {
    last_.push_back({this_task->id, operation, place});
  }
  void Yield(Place place) {
    Task* task = this_task;
    task->operation = "yields";
    task->place = place;
    if (is_over_) return;
    Count();
    task->yields = true;
    GiveTurn(task);
    task->yields = false;
  }
  void Sleep(int64_t nanos, Place place) {
    clock_ += nanos;
    Yield(place);
  }
  int64_t clock() const { return clock_; }
  void End(Task* task) {
    task->has_ended = true;
    if (is_over_) {
      sem_post(&over_);
    } else {
      GiveTurn(task);
    }
  }

  int64_t NewObject() {
    Task* task = this_task;
    return task == nullptr ? made_before_++
                           : (task->id + 1) * kMadeByOne + task->made++;
  }
  LockState& StateOf(const void* mutex) {
    std::unique_ptr<LockState>& state = of_tensorflow_[mutex];
    if (state == nullptr) state = std::make_unique<LockState>();
    return *state;
  }

  int64_t operations() const { return operations_; }
  int64_t operations_of(int task) const { return tasks_[task]->operations; }

  // Also works while the program runs.
  Task* NewThread(std::string name, std::function<void()> body) {
    return Add(std::move(name), std::move(body), /*is_daemon=*/false);
  }

  // Only fprintf to standard error: after a crash not much else may work.
  void Report(const char* what) {
    std::fprintf(stderr, "\nThe search has found: %s\n\n", what);
    const size_t begin =
        last_.size() > kLastOperations ? last_.size() - kLastOperations : 0;
    int before = -1;
    for (size_t i = begin; i < last_.size(); ++i) {
      const Operation& it = last_[i];
      if (it.task != before) {
        std::fprintf(stderr, "%s\n", tasks_[it.task]->name.c_str());
      }
      before = it.task;
      const char* file = std::strrchr(it.place.file, '/');
      std::fprintf(stderr, "    %s  %s:%d\n", it.operation,
                   file == nullptr ? it.place.file : file + 1, it.place.line);
    }
    std::fprintf(stderr, "\nEach thread's last operation:\n");
    for (auto& task : tasks_) {
      if (task->is_daemon) continue;
      std::fprintf(stderr, "    %s: %s  %s:%d%s\n", task->name.c_str(),
                   task->operation, task->place.file, task->place.line,
                   task->has_ended                 ? ", has ended"
                   : task->ready && !task->ready() ? ", is blocked"
                                                   : "");
    }
    std::fprintf(stderr,
                 "\nAgain, this interleaving alone: "
                 "TFMS_SEARCH_REPLAY=");
    for (size_t i = 0; i < switches_.size(); ++i) {
      std::fprintf(stderr, "%s%lld:%d", i == 0 ? "" : ",",
                   static_cast<long long>(switches_[i].first),
                   switches_[i].second);
    }
    std::fprintf(stderr, "\n");
  }

 private:
  Task* Add(std::string name, std::function<void()> body, bool is_daemon) {
    auto task = std::make_unique<Task>();
    task->name = std::move(name);
    task->body = std::move(body);
    task->is_daemon = is_daemon;
    sem_init(&task->turn, 0, 0);
    tasks_.push_back(std::move(task));
    Task* added = tasks_.back().get();
    if (is_running_) {
      added->id = static_cast<int>(tasks_.size()) - 1;
      AllWorkers()->Start(added);
    }
    return added;
  }

  void Count() {
    clock_ += 1000;
    ++this_task->operations;
    if (++operations_ > limits_.operations) {
      Found(
          "an execution does not end: threads wait for each other, and each "
          "goes on looking");
    }
  }

  // Counts the operation. True if it is a point of choice, because other tasks
  // touch the object, too.
  bool Note(const Shared& object, const char* operation, Place place) {
    Task* task = this_task;
    task->operation = operation;
    task->place = place;
    if (is_over_) return false;
    Count();
    Tell(operation, place);
    auto [toucher, is_new] = touched_by_.insert({object.id(), task->id});
    if (!is_new && toucher->second != task->id &&
        knowledge_->shared.insert(object.id()).second) {
      knowledge_->has_grown = true;
    }
    return knowledge_->all_are_shared ||
           knowledge_->shared.count(object.id()) > 0;
  }

  static bool CanGoOn(const Task& task) {
    return !task.has_ended && (!task.ready || task.ready());
  }

  // Lets the chosen task run; `from` waits for its next turn, unless it has
  // ended.
  void GiveTurn(Task* from) {
    Task* to = Next(from);
    if (to == from && to != nullptr) return;
    // Read before posting: once another task runs, or the execution is over, a
    // task that has ended may be deleted.
    const bool waits = from != nullptr && !from->has_ended;
    sem_post(to == nullptr ? &over_ : &to->turn);
    if (waits) Wait(&from->turn);
  }

  // The task that runs next; nullptr: the execution is over.
  Task* Next(Task* from) {
    std::vector<Task*> options;
    const auto collect = [&](auto may) {
      for (auto& task : tasks_) {
        if (may(*task)) options.push_back(task.get());
      }
      return !options.empty();
    };
    const bool yields = from != nullptr && from->yields;
    const bool can =
        collect([&](const Task& t) { return CanGoOn(t) && !t.yields; }) ||
        collect([](const Task& t) { return CanGoOn(t); });
    if (!can) {
      const bool have_ended = std::all_of(
          tasks_.begin(), tasks_.end(),
          [](auto& task) { return task->is_daemon || task->has_ended; });
      if (have_ended) return nullptr;
      // A wait times out only when no task can go on.
      if (!collect(
              [](const Task& t) { return !t.has_ended && t.may_time_out; })) {
        Found("all threads are blocked");
      }
    }
    Task* chosen = options[0];
    if (yields) {
      // Round-robin: else two yielding tasks could starve the task for which
      // they wait.
      for (Task* task : options) {
        if (task->last_turn < chosen->last_turn) chosen = task;
      }
    } else if (options.size() > 1) {
      const auto at = std::find(options.begin(), options.end(), from);
      const int current =
          at == options.end() ? -1 : static_cast<int>(at - options.begin());
      chosen = options[choices_->Choose(options, current, operations_)];
      if (chosen != from) switches_.push_back({operations_, chosen->id});
    }
    if (!can) {
      chosen->timed_out = true;
      clock_ += 10'000'000;
    }
    chosen->last_turn = ++turns_;
    for (auto& task : tasks_) {
      if (task.get() != from) task->yields = false;
    }
    return chosen;
  }

  Choices* const choices_;
  Knowledge* const knowledge_;
  const Limits limits_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::map<const void*, std::unique_ptr<LockState>> of_tensorflow_;
  std::map<int64_t, int> touched_by_;
  std::vector<Operation> last_;
  std::vector<std::pair<int64_t, int>> switches_;
  int64_t made_before_ = 1;
  int64_t operations_ = 0;
  int64_t turns_ = 0;
  int64_t clock_ = 0;
  bool is_running_ = false;
  bool is_over_ = false;
  sem_t over_;
};

Execution* execution = nullptr;
int64_t objects_of_the_process = 0;

void RunTask(Task* task) {
  Wait(&task->turn);
  this_task = task;
  task->body();
  task->body = nullptr;
  this_task = nullptr;
  execution->End(task);
}

void ReportSignal(int signal) {
  if (execution != nullptr) execution->Report(strsignal(signal));
  // A replay raises the signal again, so that a debugger sees it.
  if (std::getenv("TFMS_SEARCH_REPLAY") == nullptr) _exit(kFoundStatus);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void RunOne(const Body& body, Choices* choices, Knowledge* knowledge,
            const Limits& limits, Searched* searched) {
  Execution one(choices, knowledge, limits);
  execution = &one;
  body(&one);
  execution = nullptr;
  ++searched->executions;
  searched->most_operations =
      std::max(searched->most_operations, one.operations());
}

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(::std::chrono::steady_clock::now() +
             ::std::chrono::duration_cast<::std::chrono::nanoseconds>(
                 ::std::chrono::duration<double>(seconds))) {}
  bool HasPassed() const { return ::std::chrono::steady_clock::now() > end_; }

 private:
  const ::std::chrono::steady_clock::time_point end_;
};

// Replays the interleaving in TFMS_SEARCH_REPLAY; false if the variable is not
// set.
bool Replayed(const Body& body, const Limits& limits, Searched* searched) {
  for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) {
    ::signal(signal, ReportSignal);
  }
  const char* replay = std::getenv("TFMS_SEARCH_REPLAY");
  if (replay == nullptr) return false;
  // A replay does not know which objects are shared, so that all count as
  // shared.
  Knowledge knowledge;
  knowledge.all_are_shared = true;
  ReplayedChoices choices(replay);
  RunOne(body, &choices, &knowledge, limits, searched);
  return true;
}

// TFMS_SEARCH_TIMES makes each search longer.
double Times() {
  const char* times = std::getenv("TFMS_SEARCH_TIMES");
  return times == nullptr ? 1 : std::atof(times);
}

Searched Print(const Searched& searched) {
  std::fprintf(stderr, "%lld executions%s, of at most %lld operations\n",
               static_cast<long long>(searched.executions),
               searched.all ? ", all there are" : "",
               static_cast<long long>(searched.most_operations));
  return searched;
}
}  // namespace

Searched SearchAll(const Body& body, const Limits& limits) {
  Searched searched;
  if (Replayed(body, limits, &searched)) return searched;
  const Deadline deadline(limits.seconds * Times());
  Knowledge knowledge;
  AllChoices choices(limits.deviations);
  while (!deadline.HasPassed()) {
    RunOne(body, &choices, &knowledge, limits, &searched);
    if (std::exchange(knowledge.has_grown, false)) {
      choices.Restart();
    } else if (!choices.Next()) {
      searched.all = true;
      break;
    }
  }
  return Print(searched);
}

Searched SearchAtRandom(const Body& body, const Limits& limits) {
  Searched searched;
  if (Replayed(body, limits, &searched)) return searched;
  const Deadline deadline(limits.seconds * Times());
  Knowledge knowledge;
  int64_t choices_before = 100;
  for (uint64_t seed = 1; !deadline.HasPassed(); ++seed) {
    RandomChoices choices(seed, limits.changes, choices_before);
    RunOne(body, &choices, &knowledge, limits, &searched);
    choices_before = choices.choices();
  }
  return Print(searched);
}

void Expect(bool is_true, const std::string& what) {
  if (!is_true) Found(what);
}

void Found(const std::string& what) {
  if (execution != nullptr) {
    execution->Report(what.c_str());
  } else {
    std::fprintf(stderr, "The search has found: %s\n", what.c_str());
  }
  std::fflush(stderr);
  _exit(kFoundStatus);
}

bool IsSearched() { return this_task != nullptr; }

Shared::Shared()
    : id_(execution == nullptr ? -++objects_of_the_process
                               : execution->NewObject()) {}

void Touch(const Shared& object, const char* operation, Place place) {
  if (this_task != nullptr) execution->Touch(object, operation, place);
}

bool BlockUntil(const Shared& object, const std::function<bool()>& ready,
                const char* operation, Place place, bool may_time_out) {
  return execution->BlockUntil(object, ready, operation, place, may_time_out);
}

void Tell(const char* operation, Place place) {
  if (this_task != nullptr) execution->Tell(operation, place);
}

void Yield(Place place) {
  if (this_task != nullptr) execution->Yield(place);
}

int64_t Clock() { return execution == nullptr ? 0 : execution->clock(); }

void Sleep(int64_t nanos, Place place) {
  if (this_task != nullptr) execution->Sleep(nanos, place);
}

int ThisTask() { return this_task == nullptr ? 0 : this_task->id; }

int64_t ClockOf(int task) { return 1000 * execution->operations_of(task); }

::std::unique_ptr<::tensorflow::Thread> NewThread(
    ::std::string name, ::std::function<void()> body) {
  if (execution == nullptr) Found("a thread is started outside of a program");
  return ::std::make_unique<StartedThread>(
      execution->NewThread(::std::move(name), ::std::move(body)));
}

LockState& StateOf(const void* mutex) {
  static auto* outside = new ::std::map<const void*, LockState>;
  return execution == nullptr ? (*outside)[mutex] : execution->StateOf(mutex);
}

}  // namespace tensorflow::multistream::search
