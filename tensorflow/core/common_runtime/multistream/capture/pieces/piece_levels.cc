// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_levels.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

bool IsInPiece(int level) { return level % 2 == 1; }
int EvenFrom(int level) { return level + level % 2; }
int OddFrom(int level) { return level + (level + 1) % 2; }
int EvenTo(int level) { return level - level % 2; }
int OddTo(int level) { return level - (level + 1) % 2; }

absl::Status Unknown(const Node& node) {
  return absl::FailedPreconditionError(
      absl::StrCat("what ", node.name(), " waits for is not known"));
}

}  // namespace

absl::Status PieceLevels::Prepare(const FunctionLibraryDefinition* library,
                                  bool with_xla) {
  const int ids = graph_.num_node_ids();
  kinds_.assign(ids, Kind::kBetween);
  classes_.assign(ids, 0);
  in_loop_.assign(ids, false);
  waits_.assign(ids, false);
  before_.assign(ids, {});
  after_.assign(ids, {});
  inputs_.assign(ids, {});
  outputs_.assign(ids, {});
  order_.clear();
  pairs_.clear();
  must_prepare_ = false;
  for (const Node* node : graph_.op_nodes()) {
    TF_RETURN_IF_ERROR(MemoryTypesForNode(graph_.op_registry(), DEVICE_GPU,
                                          node->def(), &inputs_[node->id()],
                                          &outputs_[node->id()]));
  }
  for (const Edge* edge : graph_.edges()) {
    if (!edge->src()->IsOp() || !edge->dst()->IsOp() ||
        edge->src()->IsNextIteration()) {
      continue;
    }
    AddOrder(edge->src()->id(), edge->dst()->id());
  }
  for (const Node* node : graph_.op_nodes()) {
    // A cut makes ops wait for others. Ops of several devices that wait for
    // each other must not wait for different ones on each device.
    if (IsCollective(*node)) {
      return absl::FailedPreconditionError(
          absl::StrCat(node->type_string(), " '", node->name(),
                       "' is a collective, for which other devices wait"));
    }
  }
  std::vector<ControlFlowInfo> frames;
  TF_RETURN_IF_ERROR(BuildControlFlowInfo(&graph_, &frames));
  OrderLoops(frames);
  TF_RETURN_IF_ERROR(OrderTransfers());
  FindKinds(library, with_xla, frames);
  TF_RETURN_IF_ERROR(Sort());
  FindClasses(frames);
  LeaveOutValueShapes();
  LeaveOutConditions();
  return absl::OkStatus();
}

void PieceLevels::OrderLoops(const std::vector<ControlFlowInfo>& frames) {
  std::map<std::string, std::vector<int>> ends;  // of iterations, by loop
  for (const Node* node : graph_.op_nodes()) {
    if (node->IsNextIteration()) {
      ends[frames[node->id()].frame_name].push_back(node->id());
    }
  }
  for (const Node* node : graph_.op_nodes()) {
    const Node* last = nullptr;
    if (!node->IsExit() || !node->input_node(0, &last).ok()) continue;
    for (const int end : ends[frames[last->id()].frame_name]) {
      AddOrder(end, node->id());
    }
  }
}

void PieceLevels::AddOrder(int from, int to) {
  before_[to].push_back(from);
  after_[from].push_back(to);
}

absl::Status PieceLevels::OrderTransfers() {
  absl::flat_hash_map<std::string, int> sends;
  for (const Node* node : graph_.op_nodes()) {
    if (node->IsSend()) sends[TensorNameOf(*node)] = node->id();
  }
  for (const Node* node : graph_.op_nodes()) {
    if (!node->IsRecv()) continue;
    if (IsCopyInPlace(*node)) {
      const auto send = sends.find(TensorNameOf(*node));
      if (send == sends.end()) return Unknown(*node);
      AddOrder(send->second, node->id());
      pairs_.push_back({send->second, node->id()});
      continue;
    }
    const ValueWaits waits = WaitsOf(*node);
    if (!waits.known) return Unknown(*node);
    for (const std::string& name : waits.sends) {
      const auto send = sends.find(name);
      if (send == sends.end()) return Unknown(*node);
      AddOrder(send->second, node->id());
    }
  }
  return absl::OkStatus();
}

absl::Status PieceLevels::Sort() {
  std::vector<int> missing(graph_.num_node_ids());
  std::vector<int> ready;
  int nodes = 0;
  for (const Node* node : graph_.op_nodes()) {
    ++nodes;
    missing[node->id()] = static_cast<int>(before_[node->id()].size());
    if (missing[node->id()] == 0) ready.push_back(node->id());
  }
  while (!ready.empty()) {
    const int id = ready.back();
    ready.pop_back();
    order_.push_back(id);
    for (const int next : after_[id]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  if (static_cast<int>(order_.size()) == nodes) return absl::OkStatus();
  return absl::FailedPreconditionError("transfers are in a cycle");
}

void PieceLevels::FindClasses(const std::vector<ControlFlowInfo>& frames) {
  // The outcomes of conditions that a node runs with: the condition's tensor,
  // and its value.
  using Outcomes = std::set<std::pair<Output, int>>;
  std::vector<Outcomes> outcomes(graph_.num_node_ids());
  std::map<std::string, Outcomes> of_loop;  // those that it is entered with
  std::map<std::pair<std::string, Outcomes>, int> classes;
  const auto outcomes_after = [&](const Edge& edge) {
    const Node* from = edge.src();
    // In a loop, what it is entered with holds for all nodes.
    if (from->IsEnter()) return Outcomes();
    Outcomes after = outcomes[from->id()];
    const Edge* condition = nullptr;
    if (from->IsSwitch() && from->input_edge(1, &condition).ok()) {
      after.insert({{condition->src()->id(), condition->src_output()},
                    edge.src_output()});
    }
    return after;
  };
  for (const int id : order_) {
    const Node* node = graph_.FindNodeId(id);
    Outcomes& in = outcomes[id];
    bool is_first = true;
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp() || edge->src()->IsNextIteration()) continue;
      const Outcomes after = outcomes_after(*edge);
      if (!node->IsMerge()) {
        in.insert(after.begin(), after.end());
      } else if (!edge->IsControlEdge()) {
        // A Merge runs with the outcomes that all its inputs share.
        Outcomes both;
        absl::c_set_intersection(in, after, std::inserter(both, both.end()));
        in = is_first ? after : both;
        is_first = false;
      }
    }
    if (node->IsEnter()) {
      of_loop[frames[id].frame_name].insert(in.begin(), in.end());
    } else if (const Node * last;
               node->IsExit() && node->input_node(0, &last).ok()) {
      in = of_loop[frames[last->id()].frame_name];
    } else if (node->IsRecv() && IsCopyInPlace(*node)) {
      const auto pair = absl::c_find_if(
          pairs_, [id](const auto& it) { return it.second == id; });
      in = outcomes[pair->first];
    } else if (node->IsRecv()) {
      // A branch elsewhere may leave it out, which no other node tells.
      if (WaitsOf(*node).in_branch) in.insert({{id, 0}, 0});
      // In a loop it has another key in each iteration.
      if (!in.empty() || !frames[id].frame_name.empty()) LetRunAsAlways(id);
    }
    in_loop_[id] = !frames[id].frame_name.empty() && loop_of_[id] < 0;
    classes_[id] = classes
                       .try_emplace({frames[id].frame_name, in},
                                    static_cast<int>(classes.size()))
                       .first->second;
  }
  // A loop that is recorded as a whole is where it is entered.
  for (const WholeLoop& loop : loops_) {
    const int its_class = classes
                              .try_emplace({"", of_loop[loop.frame]},
                                           static_cast<int>(classes.size()))
                              .first->second;
    for (const int id : loop.nodes) classes_[id] = its_class;
  }
}

void PieceLevels::FindOnce(bool early) {
  const int ids = graph_.num_node_ids();
  std::vector<int> earliest(ids);
  int last = 0;
  for (const int id : order_) {
    int level = 0;
    for (const int from : before_[id]) {
      level = std::max(level, earliest[from]);
    }
    if (kinds_[id] == Kind::kBetween) level = EvenFrom(level);
    if (kinds_[id] == Kind::kLaunch || kinds_[id] == Kind::kLoop) {
      level = OddFrom(level);
    }
    earliest[id] = level;
    last = std::max(last, level);
  }
  last = EvenFrom(last);
  const std::vector<int> before =
      std::exchange(levels_, std::vector<int>(ids, 0));
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    const int id = *it;
    int latest = last;
    for (const int to : after_[id]) latest = std::min(latest, levels_[to]);
    switch (kinds_[id]) {
      case Kind::kBetween:
        levels_[id] = waits_[id] ? earliest[id] : EvenTo(latest);
        break;
      case Kind::kLaunch:
      case Kind::kLoop:
        levels_[id] = early ? earliest[id] : OddTo(latest);
        break;
      case Kind::kFree:
        if (IsInPiece(earliest[id])) {
          levels_[id] = OddTo(latest);
        } else if (IsInPiece(latest) && IsUsedBy(id, latest) &&
                   (!GivesShape(*graph_.FindNodeId(id)) ||
                    TakesItsTensor(id, latest, before))) {
          levels_[id] = latest;
        } else {
          levels_[id] = earliest[id];
        }
        break;
      case Kind::kCopied:
        // What it comes after need not run before its first user does:
        // constant folding orders constants after what they were made of.
        levels_[id] = latest;
        break;
    }
  }
}

bool PieceLevels::IsUsedBy(int id, int level) const {
  const Node* node = graph_.FindNodeId(id);
  if (node->IsSend()) return true;
  return absl::c_all_of(node->out_edges(), [&](const Edge* edge) {
    const int to = edge->dst()->id();
    return edge->IsControlEdge() ||
           (levels_[to] == level && classes_[to] == classes_[id]);
  });
}

bool PieceLevels::TakesItsTensor(int id, int level,
                                 const std::vector<int>& levels) const {
  const Node* tensor = nullptr;
  if (levels.empty() || !graph_.FindNodeId(id)->input_node(0, &tensor).ok()) {
    return false;
  }
  return absl::c_any_of(tensor->out_edges(), [&](const Edge* edge) {
    const int to = edge->dst()->id();
    return !edge->IsControlEdge() && levels[to] == level &&
           classes_[to] == classes_[id] && !GivesShape(*edge->dst());
  });
}

bool PieceLevels::KeepPairsTogether() {
  bool found = false;
  for (const auto& [send, receive] : pairs_) {
    if (kinds_[send] != Kind::kFree) continue;
    const bool apart =
        levels_[send] != levels_[receive] &&
        (IsInPiece(levels_[send]) || IsInPiece(levels_[receive]));
    if (!apart) continue;
    kinds_[send] = kinds_[receive] = Kind::kBetween;
    found = true;
  }
  return found;
}

void PieceLevels::FindAll(bool early) {
  do {
    levels_.clear();
    FindOnce(early);
    FindOnce(early);  // now what takes a tensor is known, so its shape follows
  } while (KeepPairsTogether());
}

int PieceLevels::LargestPiece() const {
  std::map<PieceId, int> launches;
  int largest = 0;
  for (const int id : order_) {
    const PieceId piece = PieceOf(id);
    if (piece == kNoPiece || !Launches(id)) continue;
    largest = std::max(largest, ++launches[piece]);
  }
  return largest;
}

void PieceLevels::Find() {
  // A later piece reads more of the variables that it changes itself.
  constexpr int kWorthPercent = 125;
  const std::vector<Kind> kinds = kinds_;
  FindAll(/*early=*/false);
  const int late = LargestPiece();
  const auto all = absl::c_count(kinds, Kind::kLaunch);
  if (100 * all < kWorthPercent * late) return;
  std::vector<Kind> late_kinds = std::exchange(kinds_, kinds);
  std::vector<int> late_levels = levels_;
  FindAll(/*early=*/true);
  if (100 * LargestPiece() >= kWorthPercent * late) return;
  kinds_ = std::move(late_kinds);
  levels_ = std::move(late_levels);
}

PieceLevels::PieceId PieceLevels::PieceOf(int id) const {
  if (!IsInPiece(levels_[id]) || IsCopied(id)) return kNoPiece;
  return {levels_[id], classes_[id]};
}

bool PieceLevels::IsCopyAfter(const Node& node, PieceId piece) const {
  return IsCopied(node.id()) &&
         absl::c_any_of(node.in_nodes(), [&](const Node* before) {
           return PieceOf(before->id()) == piece || IsCopyAfter(*before, piece);
         });
}

std::map<PieceLevels::PieceId, std::vector<int>> PieceLevels::Pieces() const {
  std::map<PieceId, std::vector<int>> found;
  for (const int id : order_) {
    if (const PieceId piece = PieceOf(id); piece != kNoPiece) {
      found[piece].push_back(id);
    }
  }
  return found;
}

bool MayCross(DataType type) {
  return DataTypeCanUseMemcpy(BaseType(type)) && !IsRefType(type);
}

}  // namespace tensorflow::multistream
