// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream group runs each node of a graph, and what must the group's
// stream wait for? The LaunchPlanner asks for each graph, and plan_report.h for
// people. Pure graph code: no device in it.
//
// A node's group is decided by the first of: its op, if it must run on the
// leader; the stream file; the scope it was built in; its first input with a
// group, if propagation is on; a policy (node_policy.h); the caller's group.
// Nodes of one group are ordered by its stream; for an edge between groups, the
// later node's stream waits.
//
//   group 1:  a ----> b ----------> e        e needs a (same stream), b and d;
//                \                 /         d waits for b's event, e for d's.
//   group 2:      w--> c ----> d --          e need not wait for c.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// What the plan must know of a node's kernel.
struct NodeFacts {
  // False if the executor makes the node's outputs without running a kernel
  // (constants, NoOp): the node puts nothing on a stream.
  bool launched = true;
  // Whether each output is in host memory: complete when the node is.
  std::vector<bool> on_host;
  bool needs_leader = false;  // must run on the leader
  // May change a variable. Other nodes may read the variable after they have
  // made this node's inputs, so waiting for the inputs alone is not enough.
  bool changes_state = false;
  // Keeps scratch memory, so the node must always run on the same group.
  bool keeps_scratch = false;
};

// Assumptions of a plan. plan_tuner.h tries several.
struct PlanGuess {
  bool split = true;                   // use policies that have to be measured
  Policy cost_policy = Policy::kCost;  // replaces Policy::kCost
  double wait_us = PolicyOptions().wait_us;
};

struct NodePlanOptions {
  int group_count = 1;
  int caller_group = 0;
  bool reduce = true;                // leave out waits that other waits imply
  bool propagate = false;            // follow the inputs
  const StreamFile* file = nullptr;  // or nullptr
  // For nodes whose group nothing else decides.
  Policy policy = Policy::kNone;
  // Use a policy's plan only where it has been measured to be faster.
  bool measure = true;
  PlanGuess guess;
  // How many microseconds a node keeps its group busy, where known. May be
  // empty.
  std::function<std::optional<double>(const Node&)> cost_us;
};

// The node attribute that tf.cuda.auto_stream sets: POLICY[:GROUPS[:always]].
// The policy may use GROUPS groups (0: all). With `always`, its plan is used
// without being measured.
inline constexpr char kStreamPolicyAttr[] = "_stream_policy";

struct NodePolicy {
  Policy policy = Policy::kNone;
  int groups = 1;
  bool measured = true;
  bool operator==(const NodePolicy& other) const {
    return policy == other.policy && groups == other.groups &&
           measured == other.measured;
  }
};

// The policy of a node whose group nothing else decides. InvalidArgument names
// the node if its attribute is wrong.
absl::StatusOr<NodePolicy> PolicyOf(const Node& node,
                                    const NodePlanOptions& options);

struct NodePlan {
  // What a node's stream waits for before the node is launched.
  struct Wait {
    int group;
    // Ids of nodes of `group` that come before the node.
    std::vector<int> nodes;
    // Waits for the event of the only one of `nodes`. False: for the end of
    // the group's stream, as there are several, or the node changes state.
    bool by_event;
  };
  // What other nodes' waits need to know of a node's launch.
  enum class Record { kNothing, kPosition, kEvent };

  // What decided a node's group. NameOf has the names for people.
  enum class Why { kNone, kLeader, kFile, kScope, kInput, kPolicy, kDefault };

  struct Node {
    int group = 0;
    Why why = Why::kNone;
    std::vector<Wait> waits;  // at most one for each other group
    // Waits for the ends of all groups that the graph uses.
    bool after_all = false;
    Record record = Record::kNothing;
    // The latest input is of another group: the node begins a branch. It gets a
    // thread, which then launches what follows in its group.
    bool starts = false;
  };
  std::vector<Node> nodes;  // by node id
  std::vector<bool> groups_used;
  int waits = 0;  // that remain
  int waits_left_out = 0;
};

// "leader", "file", "scope", "propagated", "policy" or "default".
const char* NameOf(NodePlan::Why why);

// InvalidArgument names a node whose group does not exist.
absl::StatusOr<NodePlan> MakeNodePlan(
    const Graph& graph, const NodePlanOptions& options,
    const std::function<NodeFacts(const Node&)>& facts_of);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_H_
