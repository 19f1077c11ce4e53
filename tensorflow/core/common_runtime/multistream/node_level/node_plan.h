// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream group runs each node of a graph, and what must its stream wait
// for? The LaunchPlanner asks for each graph, plan_table.h for people to read.
// Pure graph code: no device in it.
//
// A node goes where, in this order: its own nature (leader), the stream file,
// the scope it was built in, if allowed its first input with a group, or a
// policy says (node_policy.h); else it stays in the group of the graph's
// caller. Nodes of one group are ordered by its stream; for an edge between
// groups, the later node's stream waits.
//
//   group 1:  a ----> b ----------> e        e needs a (same stream), b and d;
//                \                 /         d waits for b's event, e for d's.
//   group 2:      w--> c ----> d --          e need not wait for c.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/policy.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// What the plan must know of a node's kernel.
struct NodeFacts {
  // False if the executor makes the node's outputs without running a kernel
  // (constants, NoOp): nothing of it is on a stream.
  bool launched = true;
  // Outputs in host memory: complete when the node is.
  std::vector<bool> on_host;
  // Empty, or why the node must run on the leader.
  std::string leader_reason;
  // May change a variable, which others may have read after they made what the
  // node takes.
  bool changes_state = false;
  // Keeps scratch memory, so that it must always run on one group.
  bool keeps_scratch = false;
};

struct NodePlanOptions {
  int group_count = 1;
  int caller_group = 0;              // the caller's group
  bool reduce = true;                // leave out waits that others imply
  bool propagate = false;            // follow the inputs
  const StreamFile* file = nullptr;  // or nullptr
  // For nodes of which nobody else says anything.
  Policy policy = Policy::kNone;
  // Whether a policy's plan counts where it has been measured to be faster
  // only.
  bool measure = true;
  // False: no policy that is to be measured counts.
  bool split = true;
  // What stands for Policy::kCost: while times are measured, others do.
  Policy cost_policy = Policy::kCost;
  // As for NodePolicyOptions.
  std::function<std::optional<double>(const Node&)> cost_us;
  double wait_us = PolicyOptions().wait_us;
};

// The attribute of a node that tf.cuda.auto_stream gave a policy:
// POLICY[:GROUPS[:always]], where it may use GROUPS groups (0: all), and is not
// measured if it is to count always.
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

// The policy of a node of which nobody else says anything. InvalidArgument
// names the node if its attribute is wrong.
absl::StatusOr<NodePolicy> PolicyOf(const Node& node,
                                    const NodePlanOptions& options);

struct NodePlan {
  struct Node {
    int group = 0;
    // "leader: REASON", "file", "scope", "propagated", "policy" or "default".
    std::string why;
    // Nodes of other groups, by id, at most one of each group, whose event the
    // node's stream waits for.
    std::vector<int> events;
    // Nodes of other groups that are waited for by one wait for the end of
    // their group's stream: two or more of each of these groups, or those that
    // a node that changes state needs.
    std::vector<int> tails;
    // Waits for the ends of all groups that the graph uses.
    bool after_all = false;
    // Some node waits for it: by `events`, or by either.
    bool records = false;
    bool noted = false;
    // What it needs last comes from another group than its own: worth a thread
    // of its own, which then launches what follows in its group.
    bool starts = false;
  };
  std::vector<Node> nodes;  // by node id
  std::vector<bool> groups_used;
  int waits = 0;  // that remain
  int waits_left_out = 0;
};

// InvalidArgument names a node whose group is not there.
absl::StatusOr<NodePlan> MakeNodePlan(
    const Graph& graph, const NodePlanOptions& options,
    const std::function<NodeFacts(const Node&)>& facts_of);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_H_
