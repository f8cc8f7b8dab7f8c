// SPDX-License-Identifier: Apache-2.0
#include "core/passes/collective_forms.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::ExprPtr;
using ir::OpId;
using ir::ReduceOp;

constexpr int64_t kPieceBytes = 16384;  // 03 C-30
constexpr int64_t kAtomicAdd = 0, kSet = 1, kGe = 1;

/// A window seen as one row of elements.
struct Line {
  ExprPtr window;      ///< [1, n]
  int64_t count = -1;  ///< n when constant
  ExprPtr n;
};

class Forms {
 public:
  Forms(CodeBuilder& b, const CollectiveCall& call, const Rail& rail) : b_(b), call_(call), rail_(rail) {}

  void write() {
    mark("begin");
    const ExprPtr ctx = CodeBuilder::ref(b_.let("comm_ctx", b_.op(OpId::k_get_comm_ctx, {call_.signal})));
    me_ = CodeBuilder::ref(b_.let("my_rank", b_.op(OpId::k_rank, {ctx})));
    ranks_ = CodeBuilder::ref(b_.let("nranks", b_.op(OpId::k_nranks, {ctx})));
    switch (call_.op) {
      case OpId::k_barrier:
        barrier(b_.int32(1));
        clear(b_.int32(1));
        break;
      case OpId::k_allreduce:
        if (call_.ring) {
          ring();
        } else {
          mesh();
        }
        break;
      case OpId::k_broadcast:
        broadcast();
        break;
      case OpId::k_allgather:
        exchange(false);
        break;
      case OpId::k_all_to_all:
        exchange(true);
        break;
      case OpId::k_reduce_scatter:
        reduce_scatter();
        break;
      case OpId::k_all_to_all_v:
        exchange_counted();
        break;
      default:
        break;
    }
    mark("end");
  }

 private:
  void mark(const char* mode) {
    ir::AttrMap attrs;
    attrs.set(AttrKey::k_name, collective_name(call_.op));
    attrs.set(AttrKey::k_mode, std::string(mode));
    attrs.set(AttrKey::k_op, static_cast<int64_t>(call_.reduce));
    attrs.set(AttrKey::k_root, call_.op == OpId::k_allreduce ? int64_t{call_.ring} : call_.root);
    std::vector<ExprPtr> operands = {call_.signal};
    if (std::string_view(mode) != "barrier") {
      // Compared between the ranks when they meet (03 X-51); the counts bound what is specified.
      operands.resize(9);
      operands[5] = call_.target;
      operands[6] = call_.input;
      operands[7] = call_.send_counts;
      operands[8] = call_.recv_counts;
      while (!operands.back()) operands.pop_back();
    }
    b_.eval(ir::op_expr(OpId::k_comm_mark, std::move(operands), attrs, ir::none_type(), b_.span()));
  }

  // ---- signals
  void notify(const ExprPtr& target, const ExprPtr& peer, std::vector<ExprPtr> cell, const ExprPtr& value,
              int64_t how) {
    b_.eval(b_.op(OpId::k_notify, {target, peer, b_.list(std::move(cell)), value, b_.index(how)}));
  }
  void wait(std::vector<ExprPtr> cell, const ExprPtr& expected) {
    b_.eval(b_.op(OpId::k_wait, {call_.signal, b_.list(std::move(cell)), expected, b_.index(kGe)}));
  }
  void each_peer(const std::function<void(ExprPtr)>& body) {
    b_.loop("peer", b_.index(0), ranks_, [&](ExprPtr q) { b_.branch(b_.ne(q, me_), [&] { body(q); }); });
  }
  // BAR(s, g)
  void barrier(const ExprPtr& generation) {
    mark("barrier");
    each_peer([&](const ExprPtr& q) { notify(call_.signal, q, rail_.cell(me_), b_.int32(1), kAtomicAdd); });
    each_peer([&](const ExprPtr& q) { wait(rail_.cell(q), generation); });
  }
  // CLR(s, n)
  void clear(const ExprPtr& credits) {
    const ExprPtr back = b_.sub(b_.int32(0), credits);
    each_peer([&](const ExprPtr& q) { notify(call_.signal, me_, rail_.cell(q), back, kAtomicAdd); });
  }

  // ---- data
  ExprPtr extent(const ExprPtr& window, int axis) { return b_.op(OpId::k_dim, {window, b_.index(axis)}); }

  Line line(const ExprPtr& window) {
    Line out;
    const ir::Type& t = *window->type;
    out.count = t.static_elements();
    if (out.count >= 0) {
      out.n = b_.index(out.count);
    } else {
      for (int i = 0; i < t.rank(); ++i) out.n = out.n ? b_.mul(out.n, extent(window, i)) : extent(window, i);
      out.n = CodeBuilder::ref(b_.let("count", out.n));
    }
    if (t.rank() == 2 && t.shape[0].is_const() && t.shape[0].value == 1) {
      out.window = window;
    } else {
      out.window =
          CodeBuilder::ref(b_.let("line", b_.op(OpId::k_reshape, {window, b_.list({b_.index(1), out.n})})));
    }
    return out;
  }

  ExprPtr load(const ExprPtr& w, std::vector<ExprPtr> at, std::vector<ExprPtr> shape, const ExprPtr& valid) {
    return b_.op(OpId::k_load, {w, b_.list(std::move(at)), b_.list(std::move(shape)), valid});
  }
  ExprPtr remote_load(const ExprPtr& w, const ExprPtr& peer, std::vector<ExprPtr> at,
                      std::vector<ExprPtr> shape, const ExprPtr& valid) {
    return b_.op(OpId::k_remote_load, {w, peer, b_.list(std::move(at)), b_.list(std::move(shape)), valid});
  }
  void store(const ExprPtr& tile, std::vector<ExprPtr> at, const ExprPtr& w) {
    b_.eval(b_.op(OpId::k_store, {tile, b_.list(std::move(at)), w}));
  }
  ExprPtr combine(const ExprPtr& a, const ExprPtr& c) {
    static constexpr OpId kOps[] = {OpId::k_add, OpId::k_maximum, OpId::k_minimum, OpId::k_mul};
    return b_.op(kOps[static_cast<int>(call_.reduce)], {a, c});
  }

  int64_t element_bytes(const ExprPtr& window) const { return dtype_bytes(window->type->dtype); }
  int64_t piece_of(const ExprPtr& window) const {
    return rail_.piece_elements > 0 ? rail_.piece_elements : kPieceBytes / element_bytes(window);
  }

  // Own value first, then the peers' in ascending rank.
  ir::VarPtr accumulate(const ExprPtr& w, const std::vector<ExprPtr>& at, const std::vector<ExprPtr>& shape,
                        const ExprPtr& valid) {
    const ir::VarPtr acc = b_.let("acc", load(w, at, shape, valid));
    each_peer([&](const ExprPtr& q) {
      const ir::VarPtr theirs = b_.let("theirs", remote_load(w, q, at, shape, valid));
      b_.set(acc, combine(CodeBuilder::ref(acc), CodeBuilder::ref(theirs)));
    });
    return acc;
  }

  // L-5b
  void mesh() {
    const ir::Type& t = *call_.target->type;
    barrier(b_.int32(1));
    const bool partial = !t.valid.empty() && t.static_shape() && t.rank() == 2;
    if (partial) {
      // A window with its own valid region: one rectangle, cut by the loads themselves (C-29).
      const std::vector<ExprPtr> at = {b_.index(0), b_.index(0)};
      const ir::VarPtr acc =
          accumulate(call_.target, at, {b_.index(t.shape[0].value), b_.index(t.shape[1].value)}, nullptr);
      barrier(b_.int32(2));
      store(CodeBuilder::ref(acc), at, call_.target);
      clear(b_.int32(2));
      return;
    }
    const Line w = line(call_.target);
    const int64_t piece = piece_of(call_.target);
    const int64_t width = w.count >= 0 ? std::min(w.count, piece) : piece;
    const auto one_piece = [&](const ExprPtr& tile, const ExprPtr& generation) {
      const ExprPtr off = b_.mul(tile, b_.index(width));
      const bool whole = w.count >= 0 && w.count % width == 0;
      const ExprPtr valid =
          whole ? nullptr : b_.list({b_.index(1), b_.min(b_.index(width), b_.sub(w.n, off))});
      const std::vector<ExprPtr> at = {b_.index(0), off};
      const ir::VarPtr acc = accumulate(w.window, at, {b_.index(1), b_.index(width)}, valid);
      barrier(generation);
      store(CodeBuilder::ref(acc), at, w.window);
    };
    const ExprPtr tiles =
        w.count >= 0 ? b_.index((w.count + width - 1) / width)
                     : b_.max(b_.index(1), b_.div(b_.add(w.n, b_.index(width - 1)), b_.index(width)));
    if (!rail_.block && ir::const_int(tiles) == 1) {
      one_piece(b_.index(0), b_.int32(2));
      clear(b_.int32(2));
      return;
    }
    ExprPtr count = tiles;
    if (rail_.block) {
      // Block b takes the tiles b, b+B, b+2B, ... (03 C-61).
      count = b_.div(b_.add(b_.sub(tiles, rail_.block), b_.index(rail_.blocks - 1)), b_.index(rail_.blocks));
    }
    if (!ir::const_int(count)) count = CodeBuilder::ref(b_.let("pieces", count));
    b_.loop("c", b_.index(0), count, [&](const ExprPtr& c) {
      const ExprPtr tile = rail_.block ? b_.add(b_.mul(c, b_.index(rail_.blocks)), rail_.block) : c;
      one_piece(tile, b_.add(c, b_.index(2)));
    });
    clear(b_.add(count, b_.index(1)));
  }

  // L-5c
  void broadcast() {
    barrier(b_.int32(1));
    b_.branch(b_.ne(me_, b_.int32(call_.root)), [&] {
      std::vector<ExprPtr> args = {call_.target, b_.index(call_.root), call_.target};
      const ir::Type& t = *call_.target->type;
      const int64_t columns = t.shape.empty() || !t.shape.back().is_const() ? -1 : t.shape.back().value;
      const int64_t piece = kPieceBytes / element_bytes(call_.target);
      if (t.static_elements() < 0 || t.static_elements() > piece) {
        args.resize(8);
        args[6] = b_.index(columns > 0 && columns < piece ? piece / columns : 1);
        args[7] = b_.index(columns > 0 ? std::min(columns, piece) : piece);
      }
      b_.eval(b_.op(OpId::k_get, std::move(args)));
    });
    barrier(b_.int32(2));
    clear(b_.int32(2));
  }

  void put_row(const ExprPtr& to_row, const ExprPtr& peer, const ExprPtr& source, const ExprPtr& from_row,
               const ExprPtr& rows) {
    const ir::Type& t = *call_.target->type;
    const ExprPtr columns = t.shape[1].is_const() ? b_.index(t.shape[1].value) : extent(call_.target, 1);
    std::vector<ExprPtr> args = {call_.target,
                                 peer,
                                 source,
                                 b_.list({to_row, b_.index(0)}),
                                 b_.list({from_row, b_.index(0)}),
                                 b_.list({rows, columns})};
    const int64_t piece = kPieceBytes / element_bytes(call_.target);
    const auto known_rows = ir::const_int(rows);
    if (!t.shape[1].is_const() || !known_rows || *known_rows * t.shape[1].value > piece) {
      args.resize(9);
      args[7] = b_.index(1);
      args[8] = b_.index(t.shape[1].is_const() ? std::min(t.shape[1].value, piece) : piece);
    }
    b_.eval(b_.op(OpId::k_put, std::move(args)));
  }

  ExprPtr as_row(const ExprPtr& x) {
    if (x->type->rank() != 1) return x;
    const ExprPtr n = x->type->shape[0].is_const() ? b_.index(x->type->shape[0].value) : extent(x, 0);
    return CodeBuilder::ref(b_.let("row", b_.op(OpId::k_reshape, {x, b_.list({b_.index(1), n})})));
  }

  // L-5d, L-5f
  void exchange(bool personal) {
    const ExprPtr source = as_row(call_.input);
    b_.loop("peer", b_.index(0), ranks_,
            [&](const ExprPtr& q) { put_row(me_, q, source, personal ? q : b_.index(0), b_.index(1)); });
    barrier(b_.int32(1));
    clear(b_.int32(1));
  }

  // L-5e
  void reduce_scatter() {
    barrier(b_.int32(1));
    const ir::Type& t = *call_.target->type;
    const int64_t s = t.shape[1].is_const() ? t.shape[1].value : -1;
    const ExprPtr n = s >= 0 ? b_.index(s) : CodeBuilder::ref(b_.let("count", extent(call_.target, 1)));
    const int64_t piece = piece_of(call_.target);
    const int64_t width = s >= 0 ? std::min(s, piece) : piece;
    const auto one_piece = [&](const ExprPtr& c) {
      const ExprPtr off = b_.mul(c, b_.index(width));
      const bool whole = s >= 0 && s % width == 0;
      const ExprPtr valid = whole ? nullptr : b_.list({b_.index(1), b_.min(b_.index(width), b_.sub(n, off))});
      const std::vector<ExprPtr> at = {me_, off};
      const ir::VarPtr acc = accumulate(call_.target, at, {b_.index(1), b_.index(width)}, valid);
      store(CodeBuilder::ref(acc), at, call_.target);
    };
    const ExprPtr pieces = b_.div(b_.add(n, b_.index(width - 1)), b_.index(width));
    if (ir::const_int(pieces) == 1) {
      one_piece(b_.index(0));
    } else {
      b_.loop("c", b_.index(0), pieces, one_piece);
    }
    barrier(b_.int32(2));
    clear(b_.int32(2));
  }

  // L-5g
  void exchange_counted() {
    const ir::Type& t = *call_.target->type;
    ExprPtr rows;  // M
    if (t.shape[0].is_const()) {
      // The rows are P*M; P is known through the counts' extent or only at run time.
      const ir::Type& counts = *call_.recv_counts->type;
      if (counts.shape[0].is_const() && counts.shape[0].value > 0)
        rows = b_.index(t.shape[0].value / counts.shape[0].value);
    }
    if (!rows) rows = CodeBuilder::ref(b_.let("block_rows", b_.div(extent(call_.target, 0), ranks_)));
    const bool column = call_.send_counts->type->rank() == 2;
    b_.loop("peer", b_.index(0), ranks_, [&](const ExprPtr& q) {
      std::vector<ExprPtr> at = {q};
      if (column) at.push_back(b_.index(0));
      const ExprPtr asked = b_.op(OpId::k_read, {call_.send_counts, b_.list(at)});
      const ir::VarPtr n =
          b_.let("rows", b_.min(asked, ir::const_int(rows) ? b_.int32(*ir::const_int(rows)) : rows));
      notify(call_.recv_counts, q, {me_, b_.index(0)}, CodeBuilder::ref(n), kSet);
      put_row(b_.mul(me_, rows), q, call_.input, b_.mul(q, rows), rows);
    });
    barrier(b_.int32(1));
    clear(b_.int32(1));
  }

  // L-6
  void ring() {
    b_.branch(b_.scalar(OpId::k_scalar_gt, ranks_, b_.int32(1)), [&] { ring_of_many(); });
  }

  void ring_of_many() {
    const ExprPtr& s = call_.signal;
    const ExprPtr one = b_.int32(1), two = b_.int32(2);
    const ExprPtr left = CodeBuilder::ref(b_.let("left", b_.mod(b_.sub(b_.add(me_, ranks_), one), ranks_)));
    const ExprPtr right = CodeBuilder::ref(b_.let("right", b_.mod(b_.add(me_, one), ranks_)));
    const Line w = line(call_.target);
    const int64_t piece = kPieceBytes / element_bytes(call_.target);
    const bool single = w.count >= 0 && w.count <= piece;
    const int64_t width = single ? w.count : piece;
    const bool narrow = element_bytes(call_.target) == 2;
    const auto boundary = [&](const ExprPtr& g) {
      const ExprPtr at = b_.div(b_.mul(g, w.n), ranks_);
      if (!narrow) return at;
      const ExprPtr up = b_.mul(b_.div(b_.add(at, b_.index(15)), b_.index(16)), b_.index(16));
      return b_.min(up, w.n);
    };
    ExprPtr pieces = one;  // Cs
    if (!single) {
      const ExprPtr cut = b_.index(piece);
      const auto up = [&](const ExprPtr& n) { return b_.div(b_.add(n, b_.index(piece - 1)), cut); };
      const ir::VarPtr most =
          b_.let("pieces", b_.max(b_.index(1), up(b_.div(b_.sub(b_.add(w.n, ranks_), one), ranks_))));
      if (narrow) {
        b_.loop("g", b_.index(0), ranks_, [&](const ExprPtr& g) {
          const ExprPtr length = b_.sub(boundary(b_.add(g, b_.index(1))), boundary(g));
          b_.set(most, b_.max(CodeBuilder::ref(most), up(length)));
        });
      }
      pieces = CodeBuilder::ref(most);
    }
    const ExprPtr zero = b_.index(0);
    const ExprPtr steps = b_.mul(two, b_.sub(ranks_, one));
    notify(s, right, {zero, me_}, pieces, kAtomicAdd);  // entry: my whole slice is staged
    b_.loop("k", zero, steps, [&](const ExprPtr& k) {
      const ExprPtr g = CodeBuilder::ref(b_.let(
          "segment", b_.mod(b_.sub(b_.sub(b_.add(me_, b_.mul(two, ranks_)), k), b_.index(2)), ranks_)));
      const ExprPtr first = CodeBuilder::ref(b_.let("first", boundary(g)));
      const ExprPtr last = CodeBuilder::ref(b_.let("last", boundary(b_.add(g, b_.index(1)))));
      const auto one_piece = [&](const ExprPtr& c) {
        wait({k, left}, single ? one : b_.add(c, b_.index(1)));
        ExprPtr off = first;
        ExprPtr length = b_.sub(last, first);
        if (!single) {
          off = CodeBuilder::ref(b_.let("offset", b_.min(last, b_.add(first, b_.mul(c, b_.index(piece))))));
          length = b_.min(b_.index(piece), b_.sub(last, off));
        }
        const std::vector<ExprPtr> at = {zero, off};
        const std::vector<ExprPtr> shape = {b_.index(1), b_.index(width)};
        const ExprPtr valid = b_.list({b_.index(1), length});
        const ir::VarPtr part = b_.let("part", remote_load(w.window, left, at, shape, valid));
        // Reduce-scatter first; from step P-1 on the finished segments go round.
        b_.branch(b_.lt(k, b_.sub(ranks_, one)), [&] {
          const ir::VarPtr mine = b_.let("mine", load(w.window, at, shape, valid));
          b_.set(part, combine(CodeBuilder::ref(mine), CodeBuilder::ref(part)));
        });
        store(CodeBuilder::ref(part), at, w.window);
        b_.branch(b_.lt(k, b_.sub(b_.mul(two, ranks_), b_.int32(3))),
                  [&] { notify(s, right, {b_.add(k, b_.index(1)), me_}, one, kAtomicAdd); });
      };
      if (single) {
        one_piece(zero);
      } else {
        b_.loop("c", zero, pieces, one_piece);
      }
    });
    notify(s, left, {zero, left}, one, kAtomicAdd);  // exit: I have read all I need of you
    wait({zero, me_}, one);
    b_.loop("k", zero, steps,
            [&](const ExprPtr& k) { notify(s, me_, {k, left}, b_.sub(b_.int32(0), pieces), kAtomicAdd); });
    notify(s, me_, {zero, me_}, b_.int32(-1), kAtomicAdd);
  }

  CodeBuilder& b_;
  const CollectiveCall& call_;
  const Rail& rail_;
  ExprPtr me_, ranks_;
};

}  // namespace

void write_collective(CodeBuilder& b, const CollectiveCall& call, const Rail& rail) {
  Forms(b, call, rail).write();
}

bool is_collective(OpId op) {
  switch (op) {
    case OpId::k_barrier:
    case OpId::k_allreduce:
    case OpId::k_broadcast:
    case OpId::k_allgather:
    case OpId::k_reduce_scatter:
    case OpId::k_all_to_all:
    case OpId::k_all_to_all_v:
      return true;
    default:
      return false;
  }
}

std::string collective_name(OpId op) { return ir::op_row(op).name; }

CollectiveCall collective_call(const ir::Expr& e) {
  CollectiveCall c;
  c.op = e.op;
  const auto arg = [&](size_t i) { return i < e.args.size() ? e.args[i] : nullptr; };
  switch (e.op) {
    case OpId::k_barrier:
      c.signal = arg(0);
      break;
    case OpId::k_allreduce:
    case OpId::k_broadcast:
    case OpId::k_reduce_scatter:
      c.target = arg(0);
      c.signal = arg(1);
      break;
    default:
      c.input = arg(0);
      c.target = arg(1);
      c.signal = arg(2);
      c.send_counts = arg(3);
      c.recv_counts = arg(4);
  }
  c.reduce = static_cast<ReduceOp>(e.attrs.get_int(AttrKey::k_op));
  c.ring = e.attrs.get_string(AttrKey::k_mode) == "ring";
  c.root = e.attrs.get_int(AttrKey::k_root);
  return c;
}

const ExprPtr& collective_result(const ir::Expr& e) {
  return e.args[static_cast<size_t>(ir::op_row(e.op).inplace_param)];
}

}  // namespace pypto::passes
