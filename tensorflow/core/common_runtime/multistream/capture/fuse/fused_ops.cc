// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/memory_lives.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

// A program takes the driver a few milliseconds to compile, so each has to save
// this many launches.
constexpr int kFewestSaved = 8;
constexpr size_t kMostOpsOfCluster = 64;
constexpr size_t kMostSlots = 32;
// Larger clusters do not wait for others: the start of a kernel is a small part
// of its time.
constexpr int64_t kMostElementsOfKernel = int64_t{1} << 20;
// The most memory that is kept apart.
constexpr uint64_t kMostApartBytes = uint64_t{64} << 20;

// A cluster while kernels are looked for.
struct Draft {
  std::vector<int> ops;  // sorted
  // The first op that has to wait for one of the cluster's, wherever its memory
  // is.
  int waits_anyway = kNever;
  // The first op that has to wait because it gets the memory of a life.
  struct Reuse {
    int op;
    int life;
  };
  std::vector<Reuse> reuses;
  std::vector<bool> is_stored;
  FusedProgram program;
  int last() const { return ops.back(); }
};

class Planner {
 public:
  explicit Planner(const std::vector<RecordedOp>& ops)
      : ops_(ops), lives_(ops), cluster_of_(ops.size(), -1) {
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      if (ops[i].alone) alone_.push_back(i);
    }
  }

  FusedOps Run() {
    FindClusters();
    FusedOps fused;
    fused.kernels = Worthwhile(FindKernels());
    Describe(&fused);
    return fused;
  }

 private:
  // A kernel while it grows.
  struct Growing {
    std::vector<int> clusters;
    int last = -1;
    int waits_anyway = kNever;
    std::vector<Draft::Reuse> reuses;
  };

  // Clusters.

  void FindClusters() {
    for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
      const RecordedOp& op = ops_[i];
      if (!op.elementwise || op.alone || op.launches != 1) {
        continue;
      }
      // With all clusters before the op, else with one of them, else alone.
      const std::vector<int> before = ClustersBefore(i);
      std::vector<std::vector<int>> choices = {before};
      if (before.size() > 1) {
        for (const int cluster : before) choices.push_back({cluster});
      }
      if (!before.empty()) choices.push_back({});
      Draft draft;
      const auto joined = std::find_if(choices.begin(), choices.end(),
                                       [&](const std::vector<int>& from) {
                                         return TryJoin(from, i, &draft);
                                       });
      if (joined == choices.end()) continue;
      for (const int cluster : *joined) clusters_[cluster].ops.clear();
      for (const int member : draft.ops) {
        cluster_of_[member] = static_cast<int>(clusters_.size());
      }
      clusters_.push_back(std::move(draft));
    }
  }

  // The clusters, latest first, that have made operands of the op, or have read
  // what the op overwrites.
  std::vector<int> ClustersBefore(int i) const {
    const ElementwiseOp& op = *ops_[i].elementwise;
    std::set<int, std::greater<int>> from;
    for (const ElementwiseOp::Operand& operand : op.operands) {
      if (!operand.IsWhole()) continue;
      const int life = lives_.Find(i, operand.address);
      if (life < 0) continue;
      int writer = -1;
      for (const Life::User& user : lives_[life].users) {
        if (user.op >= i) break;
        if (user.writes) writer = user.op;
      }
      if (writer < 0 || cluster_of_[writer] < 0) continue;
      const ElementwiseOp& made = *ops_[writer].elementwise;
      if (made.result == operand.address && made.elements == op.elements) {
        from.insert(cluster_of_[writer]);
      }
    }
    const int overwritten = lives_.Find(i, op.result);
    if (overwritten < 0) return {from.begin(), from.end()};
    for (const Life::User& user : lives_[overwritten].users) {
      if (user.op >= i) break;
      if (cluster_of_[user.op] >= 0 &&
          ops_[user.op].elementwise->elements == op.elements) {
        from.insert(cluster_of_[user.op]);
      }
    }
    return {from.begin(), from.end()};
  }

  // Whether op `i` and the clusters `from` can be one cluster.
  bool TryJoin(const std::vector<int>& from, int i, Draft* draft) {
    *draft = {};
    for (const int cluster : from) {
      const std::vector<int>& ops = clusters_[cluster].ops;
      draft->ops.insert(draft->ops.end(), ops.begin(), ops.end());
    }
    draft->ops.push_back(i);
    if (draft->ops.size() > kMostOpsOfCluster) return false;
    std::sort(draft->ops.begin(), draft->ops.end());
    if (!IsAligned(draft->ops)) return false;
    FindWaiting(draft);
    std::vector<int> added;
    if (draft->waits_anyway <= i) return false;
    if (!CanBeApart(draft->reuses, i, &added)) return false;
    // Two tensors may be different parts of one allocation.
    std::map<std::pair<int, uint64_t>, int> ids;
    const auto id_of = [&](int op, uint64_t address) {
      const int next = static_cast<int>(ids.size());
      return ids.try_emplace({lives_.Find(op, address), address}, next)
          .first->second;
    };
    std::vector<FusedOp> ops;
    for (size_t k = 0; k < draft->ops.size(); ++k) {
      const int op = draft->ops[k];
      const ElementwiseOp& it = *ops_[op].elementwise;
      FusedOp& fused = ops.emplace_back(FusedOp{&it, {}, draft->is_stored[k]});
      for (const auto& operand : it.operands) {
        fused.ids.push_back(id_of(op, operand.address));
      }
      fused.ids.push_back(id_of(op, it.result));
    }
    draft->program = ProgramOf(ops);
    if (draft->program.slots.size() > kMostSlots) return false;
    KeepApart(added);
    return true;
  }

  // Whether each element depends on the same element of the ops' memory only:
  // what one of the ops writes, the others use at the same address, as elements
  // of the same type.
  bool IsAligned(const std::vector<int>& ops) const {
    struct Place {
      uint64_t address = 0;
      bool is_bool = false;
      bool is_mixed = false;
      bool is_written = false;
    };
    absl::flat_hash_map<int, Place> places;
    for (const int i : ops) {
      const ElementwiseOp& op = *ops_[i].elementwise;
      const auto add = [&](const ElementwiseOp::Operand& it, bool is_bool,
                           bool writes) {
        const int life = lives_.Find(i, it.address);
        if (life < 0) return false;
        Place& place = places[lives_[life].place];
        if (place.address == 0) {
          place.address = it.address;
          place.is_bool = is_bool;
        }
        place.is_mixed = place.is_mixed || !it.IsWhole() ||
                         place.address != it.address ||
                         place.is_bool != is_bool;
        place.is_written = place.is_written || writes;
        return true;
      };
      for (size_t k = 0; k < op.operands.size(); ++k) {
        if (!add(op.operands[k], TakesBools(op.arithmetic, k), false)) {
          return false;
        }
      }
      if (!add({op.result}, GivesBools(op.arithmetic), true)) return false;
    }
    return std::all_of(places.begin(), places.end(), [](const auto& it) {
      return !it.second.is_mixed || !it.second.is_written;
    });
  }

  // Whether all users of the life are among `ops`, which are sorted, and the
  // first one makes its value, so that its values need no memory. An op of
  // which nothing is known may use it while it lives.
  bool IsInner(int life, const std::vector<int>& ops) const {
    const Life& it = lives_[life];
    if (it.end == kNever || it.allocation < 0 || !it.users[0].writes) {
      return false;
    }
    const auto alone =
        std::upper_bound(alone_.begin(), alone_.end(), it.users[0].op);
    return (alone == alone_.end() || *alone > it.end) &&
           std::all_of(
               it.users.begin(), it.users.end(),
               [&](const Life::User& user) { return Has(ops, user.op); });
  }

  static bool Has(const std::vector<int>& sorted, int op) {
    return std::binary_search(sorted.begin(), sorted.end(), op);
  }

  // Sets what follows from the cluster's ops.
  void FindWaiting(Draft* draft) const {
    const std::vector<int>& ops = draft->ops;
    draft->waits_anyway = kNever;
    const auto alone = std::upper_bound(alone_.begin(), alone_.end(), ops[0]);
    if (alone != alone_.end()) draft->waits_anyway = *alone;
    absl::flat_hash_set<int> seen;
    for (const int i : ops) {
      const int result = lives_.Find(i, ops_[i].elementwise->result);
      draft->is_stored.push_back(!IsInner(result, ops));
      for (const MemoryLives::Used& used : lives_.UsedBy(i)) {
        if (IsInner(used.life, ops)) continue;
        draft->waits_anyway =
            std::min(draft->waits_anyway, FirstToWait(used, i, ops));
        if (!seen.insert(used.life).second) continue;
        if (const int next = FirstAfter(used.life, ops); next != kNever) {
          draft->reuses.push_back({next, used.life});
        }
      }
    }
  }

  // The first op, not of `ops`, that has to wait for op `i` because of the use.
  int FirstToWait(const MemoryLives::Used& used, int i,
                  const std::vector<int>& ops) const {
    const Life& life = lives_[used.life];
    // Weights, which each iteration of a loop reads: nothing waits for them.
    if (!used.writes && !life.is_written) return kNever;
    for (const Life::User& user : life.users) {
      if (user.op > i && (used.writes || user.writes) && !Has(ops, user.op)) {
        return user.op;
      }
    }
    return kNever;
  }

  // The first op, not of `ops`, that uses a later life of the same place.
  int FirstAfter(int life, const std::vector<int>& ops) const {
    const std::vector<int>& all = lives_.OfPlace(lives_[life].place);
    for (auto later = std::upper_bound(all.begin(), all.end(), life);
         later != all.end(); ++later) {
      for (const Life::User& user : lives_[*later].users) {
        if (!Has(ops, user.op)) return user.op;
      }
    }
    return kNever;
  }

  // Whether the lives whose memory is given out again up to op `last` can be
  // kept apart. Those that are not yet are added to `added`.
  bool CanBeApart(const std::vector<Draft::Reuse>& reuses, int last,
                  std::vector<int>* added) const {
    uint64_t bytes = apart_bytes_;
    for (const auto& [op, life] : reuses) {
      if (op > last || apart_.contains(life)) continue;
      if (lives_[life].allocation < 0) return false;
      added->push_back(life);
      bytes += lives_[life].bytes;
    }
    return bytes <= kMostApartBytes;
  }

  void KeepApart(const std::vector<int>& lives) {
    for (const int life : lives) {
      if (apart_.insert(life).second) apart_bytes_ += lives_[life].bytes;
    }
  }

  // Kernels.

  std::vector<Growing> FindKernels() {
    std::vector<int> order;
    for (size_t k = 0; k < clusters_.size(); ++k) {
      if (!clusters_[k].ops.empty()) order.push_back(static_cast<int>(k));
    }
    std::sort(order.begin(), order.end(), [this](int a, int b) {
      return clusters_[a].last() < clusters_[b].last();
    });
    apart_.clear();
    apart_bytes_ = 0;
    std::vector<Growing> kernels;
    std::map<std::string, size_t> open;
    for (const int k : order) {
      const Draft& draft = clusters_[k];
      const std::string key = draft.program.Key();
      const auto known = open.find(key);
      if (known != open.end() && IsSmall(draft) &&
          Extend(&kernels[known->second], k)) {
        continue;
      }
      Growing alone;
      if (!Extend(&alone, k)) continue;
      if (IsSmall(draft)) open[key] = kernels.size();
      kernels.push_back(std::move(alone));
    }
    return kernels;
  }

  bool IsSmall(const Draft& draft) const {
    return ops_[draft.last()].elementwise->elements <= kMostElementsOfKernel;
  }

  bool Extend(Growing* kernel, int k) {
    const Draft& added = clusters_[k];
    const int waits_anyway = std::min(kernel->waits_anyway, added.waits_anyway);
    if (waits_anyway <= added.last()) return false;
    std::vector<Draft::Reuse> reuses = kernel->reuses;
    reuses.insert(reuses.end(), added.reuses.begin(), added.reuses.end());
    std::vector<int> apart;
    if (!CanBeApart(reuses, added.last(), &apart)) return false;
    KeepApart(apart);
    kernel->clusters.push_back(k);
    kernel->last = added.last();
    kernel->waits_anyway = waits_anyway;
    kernel->reuses = std::move(reuses);
    return true;
  }

  // The kernels of programs that save enough launches.
  std::vector<FusedKernel> Worthwhile(const std::vector<Growing>& kernels) {
    std::map<std::string, int> saved;
    std::vector<FusedKernel> all;
    for (const Growing& growing : kernels) {
      FusedKernel kernel;
      for (const int k : growing.clusters) {
        kernel.clusters.push_back({clusters_[k].ops, clusters_[k].is_stored});
      }
      kernel.program = clusters_[growing.clusters[0]].program;
      kernel.last = growing.last;
      saved[kernel.program.Key()] += SavedBy(kernel);
      all.push_back(std::move(kernel));
    }
    std::vector<FusedKernel> kept;
    apart_.clear();
    apart_bytes_ = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (SavedBy(all[i]) < 1) continue;
      if (saved[all[i].program.Key()] < kFewestSaved) continue;
      for (const auto& [op, life] : kernels[i].reuses) {
        if (op <= kernels[i].last) KeepApart({life});
      }
      kept.push_back(std::move(all[i]));
    }
    return kept;
  }

  static int LaunchesOf(const FusedKernel& kernel) {
    const int most = MostCallsOf(kernel.program);
    return (static_cast<int>(kernel.clusters.size()) + most - 1) / most;
  }

  static int SavedBy(const FusedKernel& kernel) {
    int ops = 0;
    for (const FusedCluster& cluster : kernel.clusters) {
      ops += static_cast<int>(cluster.ops.size());
    }
    return ops - LaunchesOf(kernel);
  }

  // Fills in what follows from the kernels.
  void Describe(FusedOps* fused) const {
    const int ops = static_cast<int>(ops_.size());
    fused->kernel_of.assign(ops, -1);
    fused->launched_as.assign(ops, -1);
    for (size_t g = 0; g < fused->kernels.size(); ++g) {
      fused->saved += SavedBy(fused->kernels[g]);
      for (const FusedCluster& cluster : fused->kernels[g].clusters) {
        for (const int op : cluster.ops) {
          fused->kernel_of[op] = static_cast<int>(g);
        }
      }
    }
    for (const int life : apart_) {
      fused->apart.push_back(static_cast<size_t>(lives_[life].allocation));
    }
    for (int i = 0; i < ops; ++i) {
      const int g = fused->kernel_of[i];
      if (g >= 0 && fused->kernels[g].last != i) continue;
      fused->launched_as[i] = static_cast<int>(fused->launched.size());
      fused->launched.push_back(g < 0 ? Renamed(ops_[i], i)
                                      : LaunchedAs(fused->kernels[g]));
    }
  }

  // A use of a life: not of its place, as the life may be kept apart.
  MemoryUse Renamed(const MemoryLives::Used& used) const {
    const uint64_t begin =
        apart_.contains(used.life)
            ? 2 * static_cast<uint64_t>(lives_.size() + used.life)
            : 2 * static_cast<uint64_t>(lives_[used.life].place);
    return {begin, begin + 1, used.writes};
  }

  RecordedOp Renamed(const RecordedOp& op, int i) const {
    RecordedOp renamed;
    renamed.launches = op.launches;
    renamed.alone = op.alone;
    renamed.takes_workspace = op.takes_workspace;
    for (const MemoryLives::Used& used : lives_.UsedBy(i)) {
      renamed.uses.push_back(Renamed(used));
    }
    return renamed;
  }

  RecordedOp LaunchedAs(const FusedKernel& kernel) const {
    RecordedOp op;
    op.launches = LaunchesOf(kernel);
    for (const FusedCluster& cluster : kernel.clusters) {
      for (const int i : cluster.ops) {
        for (const MemoryLives::Used& used : lives_.UsedBy(i)) {
          if (IsInner(used.life, cluster.ops)) continue;
          op.uses.push_back(Renamed(used));
        }
      }
    }
    return op;
  }

  const std::vector<RecordedOp>& ops_;
  const MemoryLives lives_;
  std::vector<int> alone_;
  std::vector<Draft> clusters_;     // without ops: has become part of another
  std::vector<int> cluster_of_;     // by op, or -1
  absl::flat_hash_set<int> apart_;  // lives
  uint64_t apart_bytes_ = 0;
};

}  // namespace

std::string FusedOps::Summary() const {
  return absl::StrCat(saved, " launches less, by ", kernels.size(),
                      " kernels for several ops; ", apart.size(),
                      " allocations are kept apart");
}

FusedOps FusedOpsOf(const std::vector<RecordedOp>& ops) {
  return Planner(ops).Run();
}

const FusedKernel* FusedCalls::Add(int op,
                                   std::optional<ElementwiseOp> elementwise) {
  found_[op] = std::move(elementwise);
  const FusedKernel& kernel = fused_.kernels[fused_.kernel_of[op]];
  return kernel.last == op ? &kernel : nullptr;
}

absl::StatusOr<std::vector<FusedCall>> FusedCalls::CallsOf(
    const FusedKernel& kernel) const {
  std::vector<FusedCall> calls;
  for (const FusedCluster& cluster : kernel.clusters) {
    std::vector<ElementwiseOp> ops;
    for (const int op : cluster.ops) {
      if (!found_[op]) {
        return absl::UnimplementedError("an op is not elementwise any more");
      }
      ops.push_back(*found_[op]);
    }
    TF_ASSIGN_OR_RETURN(calls.emplace_back(), CallOf(kernel.program, ops));
  }
  return calls;
}

}  // namespace tensorflow::multistream
