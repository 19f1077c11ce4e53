// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace tensorflow::multistream {
namespace {

// The cost of waiting for an op of another chain, in launches. With 1, 2 and 4
// launches the training of NASNet took 2.36, 2.16 and 3.14 ms on an H200
// (docs/captured-steps-why.md): with 4 it seems to gain too little.
constexpr int kOfAnotherChain = 2;

// The fewest launches of a branch, and the most of the length that may remain.
constexpr int kLaunchesOfBranch = 8;
constexpr double kMostOfLength = 0.7;
// The most workspaces in use at once: each takes 32 MiB.
constexpr int kWorkspaces = 4;

class OpSet {
 public:
  explicit OpSet(int ops) : words_((ops + 63) / 64) {}

  bool Has(int op) const { return (words_[op / 64] >> (op % 64) & 1) != 0; }
  void Add(int op) { words_[op / 64] |= uint64_t{1} << (op % 64); }
  void Add(const OpSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

 private:
  std::vector<uint64_t> words_;
};

std::vector<MemoryUse> AllUses(const std::vector<RecordedOp>& ops) {
  std::vector<MemoryUse> uses;
  for (const RecordedOp& op : ops) {
    uses.insert(uses.end(), op.uses.begin(), op.uses.end());
  }
  return uses;
}

class Order {
 public:
  Order(const std::vector<RecordedOp>& ops, int chains,
        int chains_with_workspace)
      : ops_(ops),
        places_(AllUses(ops)),
        chains_(std::max(chains, 1)),
        chains_with_workspace_(
            std::clamp(chains_with_workspace, 1, std::max(chains, 1))),
        users_(places_.size()),
        chain_of_(ops.size()),
        end_of_(ops.size()) {}

  std::vector<std::vector<int>> Run() {
    std::vector<std::vector<int>> waits;
    for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
      OpSet ancestors(static_cast<int>(ops_.size()));
      std::vector<int> before = Reduced(Needed(i), &ancestors);
      if (const int tail = Place(i, before, ancestors); tail >= 0) {
        before.push_back(tail);
        before = Reduced(std::move(before), &ancestors);
      }
      ancestors_.push_back(std::move(ancestors));
      waits.push_back(std::move(before));
    }
    return waits;
  }

 private:
  struct Users {
    int writer = -1;
    std::vector<int> readers;  // since that write
  };
  struct Chain {
    int tail = -1;
    int end = 0;
  };

  // The ops that op `i` must follow because of the memory that they use.
  std::vector<int> Needed(int i) {
    const RecordedOp& op = ops_[i];
    std::vector<int> needed;
    if (last_alone_ >= 0) needed.push_back(last_alone_);
    if (op.alone) {
      for (int other = last_alone_ + 1; other < i; ++other) {
        needed.push_back(other);
      }
      last_alone_ = i;
    }
    // A place that the op both reads and writes counts as written.
    std::vector<std::pair<int, bool>> uses;
    for (const MemoryUse& use : op.uses) {
      if (use.begin >= use.end) continue;
      uses.emplace_back(places_.Find(use.begin), !use.writes);
    }
    std::sort(uses.begin(), uses.end());
    int last = -1;
    for (const auto& [place, only_reads] : uses) {
      if (place == last) continue;
      last = place;
      Users& users = users_[place];
      if (users.writer >= 0) needed.push_back(users.writer);
      if (only_reads) {
        users.readers.push_back(i);
        continue;
      }
      needed.insert(needed.end(), users.readers.begin(), users.readers.end());
      users = {i, {}};
    }
    return needed;
  }

  // Transitive reduction of `ops`. `all`: all ancestors, inclusive.
  std::vector<int> Reduced(std::vector<int> ops, OpSet* all) const {
    std::sort(ops.rbegin(), ops.rend());
    *all = OpSet(static_cast<int>(ops_.size()));
    std::vector<int> reduced;
    for (const int op : ops) {
      if (all->Has(op)) continue;
      reduced.push_back(op);
      all->Add(op);
      all->Add(ancestors_[op]);
    }
    return reduced;
  }

  // Appends op `i` to the chain in which it can start first, by estimate.
  // Returns the chain's previous tail if that is a new wait, else -1.
  int Place(int i, const std::vector<int>& before, const OpSet& ancestors) {
    const int allowed =
        ops_[i].takes_workspace ? chains_with_workspace_ : chains_;
    int best = 0;
    std::tuple<int, int> best_rank;
    for (int c = 0; c < allowed; ++c) {
      const Chain& chain = chain_[c];
      int start = chain.end;
      for (const int op : before) {
        const int apart = chain_of_[op] == c ? 0 : kOfAnotherChain;
        start = std::max(start, end_of_[op] + apart);
      }
      const bool waits_more = chain.tail >= 0 && !ancestors.Has(chain.tail);
      const std::tuple<int, int> rank{start, waits_more ? 1 : 0};
      if (c == 0 || rank < best_rank) {
        best = c;
        best_rank = rank;
      }
    }
    Chain& chain = chain_[best];
    const int tail = chain.tail;
    chain_of_[i] = best;
    end_of_[i] = std::get<0>(best_rank) + ops_[i].launches;
    chain = {i, end_of_[i]};
    return tail >= 0 && !ancestors.Has(tail) ? tail : -1;
  }

  const std::vector<RecordedOp>& ops_;
  const MemoryPlaces places_;
  const int chains_;
  const int chains_with_workspace_;
  std::vector<Users> users_;  // by place
  int last_alone_ = -1;
  std::vector<OpSet> ancestors_;
  std::vector<int> chain_of_;
  std::vector<int> end_of_;
  std::vector<Chain> chain_ = std::vector<Chain>(chains_);
};

}  // namespace

MemoryUse UseOf(const void* address, size_t bytes, bool writes) {
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  return {begin, begin + bytes, writes};
}

MemoryPlaces::MemoryPlaces(std::vector<MemoryUse> uses) {
  std::sort(uses.begin(), uses.end(),
            [](const MemoryUse& a, const MemoryUse& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  for (const MemoryUse& use : uses) {
    if (use.begin >= use.end) continue;
    if (places_.empty() || use.begin >= places_.back().end) {
      places_.push_back(use);
    } else {
      places_.back().end = std::max(places_.back().end, use.end);
    }
  }
}

int MemoryPlaces::Find(uint64_t address) const {
  const auto after =
      std::upper_bound(places_.begin(), places_.end(), address,
                       [](uint64_t value, const MemoryUse& place) {
                         return value < place.begin;
                       });
  if (after == places_.begin() || address >= std::prev(after)->end) return -1;
  return static_cast<int>(after - places_.begin()) - 1;
}

std::vector<std::vector<int>> OrderOf(const std::vector<RecordedOp>& ops,
                                      int chains, int chains_with_workspace) {
  return Order(ops, chains, chains_with_workspace).Run();
}

int LengthOf(const std::vector<RecordedOp>& ops,
             const std::vector<std::vector<int>>& waits) {
  std::vector<int> end(ops.size());
  std::vector<bool> goes_on(ops.size());
  int length = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    bool continues = false;
    for (const int before : waits[i]) {
      const bool here = !continues && !goes_on[before];
      if (here) continues = goes_on[before] = true;
      end[i] = std::max(end[i], end[before] + (here ? 0 : kOfAnotherChain));
    }
    end[i] += ops[i].launches;
    length = std::max(length, end[i]);
  }
  return length;
}

Branches BranchesOf(const std::vector<RecordedOp>& ops, int most) {
  Branches branches;
  if (ops.size() > kMostOpsWithBranches) return branches;
  int with_workspace = 0;
  for (const RecordedOp& op : ops) {
    branches.launches += op.launches;
    with_workspace += op.takes_workspace;
  }
  branches.length = branches.launches;
  branches.chains = std::min(most, branches.launches / kLaunchesOfBranch);
  if (branches.chains < 2) return branches;
  branches.workspaces =
      std::clamp(with_workspace, 1, std::min(branches.chains, kWorkspaces));
  branches.waits = OrderOf(ops, branches.chains, branches.workspaces);
  branches.length = LengthOf(ops, branches.waits);
  branches.gain = branches.length <= kMostOfLength * branches.launches;
  return branches;
}

}  // namespace tensorflow::multistream
