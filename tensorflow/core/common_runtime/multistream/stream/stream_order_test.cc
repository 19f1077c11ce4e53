// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow::multistream {
namespace {

using RecordedEvent = std::unique_ptr<StreamOrder::RecordedEvent>;

constexpr int kGroups = 4;

// "1b": the second event that group 1 has made.
struct NamedEvent : public StreamEvent {
  std::string name;
};

const std::string& NameOf(StreamEvent* event) {
  return static_cast<NamedEvent*>(event)->name;
}

// Records "r1a" for an event, and "2<1a" for group 2's wait for the event. Runs
// the test's code inside calls.
class WatchedGroup : public FakeStreamGroup {
 public:
  WatchedGroup(int index, StreamRecord* record)
      : FakeStreamGroup(0, index, record), record_(record) {}
  std::unique_ptr<StreamEvent> NewEvent() override {
    auto event = std::make_unique<NamedEvent>();
    event->name = absl::StrCat(index(), std::string(1, next_name_++));
    return event;
  }
  void Record(StreamEvent* event) override {
    record_->Add(absl::StrCat("r", NameOf(event)));
  }
  void WaitForEvent(StreamGroup* other, StreamEvent* event) override {
    EXPECT_EQ(NameOf(event)[0] - '0', other->index());
    record_->Add(absl::StrCat(index(), "<", NameOf(event)));
    if (before_waiting) before_waiting();
  }

  std::function<void()> before_waiting;

 private:
  StreamRecord* const record_;
  char next_name_ = 'a';
};

class StreamOrderTest : public ::testing::Test {
 protected:
  StreamOrderTest() { Start(/*reduce=*/true); }

  void Start(bool reduce) {
    record_.Take();
    watched_.clear();
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < kGroups; ++i) {
      auto group = std::make_unique<WatchedGroup>(i, &record_);
      watched_.push_back(group.get());
      groups.push_back(std::move(group));
    }
    gpu_ = std::make_unique<GpuGroups>(std::move(groups));
    order_ = std::make_unique<StreamOrder>(gpu_.get(), reduce);
  }
  std::string Calls() { return absl::StrJoin(record_.Take(), " "); }

  // Takes the steps of a program:
  //
  //   1+      a launch on group 1
  //   1:x     event x is recorded on group 1; 1:x-: and recycled
  //   2<x     group 2 waits for event x
  //   2~1:5   group 2 waits for group 1's tail, for position 5
  //   2*1     group 2 waits for all of group 1
  //   2?1:5   group 2 knows position 5 of group 1; 2!1:5: does not
  void Run(absl::string_view program) {
    std::map<char, RecordedEvent> events;
    for (absl::string_view step : absl::StrSplit(program, ' ')) {
      const int group = step[0] - '0';
      const int other = step.size() > 2 ? step[2] - '0' : 0;
      const int64_t position = step.size() > 4 ? step[4] - '0' : 0;
      switch (step[1]) {
        case '+':
          order_->Launched(group);
          break;
        case ':':
          events[step[2]] = order_->Record(group);
          if (step.size() > 3) order_->Recycle(std::move(events[step[2]]));
          break;
        case '<':
          order_->WaitFor(group, *events[step[2]]);
          break;
        case '~':
          order_->WaitForTail(group, other, position);
          break;
        case '*':
          order_->WaitForAll(group, other);
          break;
        default:
          EXPECT_EQ(order_->Knows(group, other, position), step[1] == '?')
              << step;
      }
    }
  }

  StreamRecord record_;
  std::vector<WatchedGroup*> watched_;
  std::unique_ptr<GpuGroups> gpu_;
  std::unique_ptr<StreamOrder> order_;
};

TEST_F(StreamOrderTest, WaitsAreEnqueuedUnlessTheyAreKnown) {
  struct Case {
    const char* what;
    bool reduce;
    const char* program;
    const char* calls;
    const char* counts;  // recorded, waited, known
  };
  const Case cases[] = {
      {"nothing is known at first but one's own", true,
       "1+ 1?1:1 0!1:1 2!1:1 3!1:1 0?1:0 2?1:0 2?3:0", "", "0 0 0"},
      {"a group waits for the recorded event", true,
       "1+ 1:x 1+ 1:y 2<x 2?1:1 2!1:2 2<y 2?1:2", "r1a r1b 2<1a 2<1b", "2 2 0"},
      {"only the group that waits knows", true,
       "1+ 1:x 2<x 0!1:1 3!1:1 1!2:1 2!0:1", "r1a 2<1a", "1 1 0"},
      {"a wait for what is known is left out", true,
       "1+ 1:x 1+ 1:y 2<y 2<y 2<x 2?1:2 3<x", "r1a r1b 2<1b 3<1a", "2 2 2"},
      {"a later launch is not known", true, "1+ 1:x 2<x 1+ 1:y 2<y",
       "r1a 2<1a r1b 2<1b", "2 2 0"},
      {"a wait for an earlier event takes nothing back", false,
       "1+ 1:x 1+ 1:y 2<y 2<x 2?1:2", "r1a r1b 2<1b 2<1a", "2 2 0"},
      {"a group does not wait for itself", true, "1+ 1:x 1<x 1+ 1~1:2 1*1",
       "r1a", "1 0 0"},
      {"a group knows what the event's group knew", true,
       "0+ 0:x 1<x 1+ 1:y 2<y 2+ 2:z 3<z 3?0:1 3?1:1 3!0:2 3~0:1 3~1:1",
       "r0a 1<0a r1a 2<1a r2a 3<2a", "3 3 2"},
      {"a group does not know what the event's group learnt later", true,
       "0+ 0:x 1+ 1:y 1<x 2<y 2?1:1 2!0:1 2<x", "r0a r1a 1<0a 2<1a 2<0a",
       "2 3 0"},
      {"without reduction only waits for oneself are left out", false,
       "0+ 0:x 1<x 1+ 1:y 2<y 2?0:1 2<y 2<x 2~0:1 2~3:0 1<y 1~1:5",
       "r0a 1<0a r1a 2<1a 2<1a 2<0a r0b 2<0b r3a 2<3a", "4 6 0"},
      {"a wait for a tail covers all that was launched", true,
       "1+ 1+ 2~1:1 2?1:2 2!1:3", "r1a 2<1a", "1 1 0"},
      {"a wait for a tail is left out if the position is known", true,
       "1+ 1:x 2<x 1+ 2~1:1 2~1:2 2~1:2", "r1a 2<1a r1b 2<1b", "2 2 2"},
      {"a wait for a tail tells what its group knew", true,
       "0+ 0:x 1<x 1+ 2~1:1 2?0:1", "r0a 1<0a r1a 2<1a", "2 2 0"},
      {"a wait for all is always issued", true, "1+ 1:x 2<x 2*1 2*1 2*3",
       "r1a 2<1a r1b 2<1b r1b 2<1b r3a 2<3a", "4 4 0"},
      {"a wait for all covers all that was launched", true, "1+ 2*1 2~1:1",
       "r1a 2<1a", "1 1 1"},
      {"an event that is not needed any more is recorded anew", true,
       "1+ 1:x- 1+ 1:y 1:z", "r1a r1a r1b", "3 0 0"},
      {"an event is recorded anew for its own group", true, "1+ 1:x- 2:y 1:z",
       "r1a r2a r1a", "3 0 0"},
      {"an event that is recorded anew forgets what it was", true,
       "1+ 1:x- 0+ 0:y 1<y 1+ 1:z 2<z 2?1:2 2?0:1", "r1a r0a 1<0a r1a 2<1a",
       "3 2 0"},
      {"waits for tails share an event", true, "1+ 2~1:1 3*1 1+ 2~1:3",
       "r1a 2<1a r1a 3<1a r1a 2<1a", "3 3 0"},
  };
  for (const Case& it : cases) {
    SCOPED_TRACE(it.what);
    Start(it.reduce);
    Run(it.program);
    EXPECT_EQ(Calls(), it.calls);
    const StreamOrder::Counts counts = order_->counts();
    EXPECT_EQ(
        absl::StrCat(counts.recorded, " ", counts.waited, " ", counts.known),
        it.counts);
  }
}

TEST_F(StreamOrderTest, AnEventIsAtThePositionOfItsGroup) {
  EXPECT_EQ(order_->Record(1)->position, 0);
  EXPECT_EQ(order_->Launched(1), 1);
  EXPECT_EQ(order_->Launched(1), 2);
  EXPECT_EQ(order_->Launched(2), 1);
  const RecordedEvent recorded = order_->Record(1);
  EXPECT_EQ(recorded->group, 1);
  EXPECT_EQ(recorded->position, 2);
  order_->Recycle(nullptr);
}

// Other threads act in the middle of a call.

TEST_F(StreamOrderTest, AnEventIsNotRecordedAnewBeforeTheStreamWaits) {
  watched_[2]->before_waiting = [&] { Run("1:x"); };
  Run("1+ 2~1:1");
  EXPECT_EQ(Calls(), "r1a 2<1a r1b");
}

}  // namespace
}  // namespace tensorflow::multistream
