// SPDX-License-Identifier: Apache-2.0
#include "core/passes/core_halves.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "core/passes/build.h"
#include "core/passes/effects.h"
#include "core/passes/walk.h"

namespace pypto::passes {

using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionType;
using ir::OpId;
using ir::Var;
using ir::VarPtr;

void begin_halves(const Function& f, Halves& halves) {
  for (const Side s : kSides) {
    Function& fn = *halves[s].fn;
    fn.name = f.name + (s == kCube ? "_aic" : "_aiv");
    fn.type = s == kCube ? FunctionType::kAIC : FunctionType::kAIV;
    fn.level = s == kCube ? ir::Level::kAIC : ir::Level::kAIV;
    fn.span = f.span;
    (s == kCube ? fn.uses_cube : fn.uses_vector) = true;
    for (const auto& v : f.params) fn.params.push_back(halves[s].cloner.var(v));
    fn.directions = f.directions;
    for (const auto& v : f.symbols) fn.symbols.push_back(halves[s].cloner.var(v));
    halves[s].blocks = {&fn.body};
  }
}

void check_shared_memory(const Function& f, const Halves& halves) {
  std::array<std::vector<Access>, 2> by;
  for (const Side s : kSides) {
    const Function& fn = *halves[s].fn;
    const auto found = accesses(fn.body, fn.params);
    for (const auto& p : fn.params) {
      const auto it = found.find(p.get());
      by[s].push_back(it == found.end() ? Access() : it->second);
    }
  }
  for (size_t i = 0; i < f.params.size(); ++i) {
    for (const Side s : kSides) {
      const Access& a = by[other(s)][i];
      if (by[s][i].write && (a.read || a.write)) throw NotSplit();
    }
  }
  walk_exprs(f.body, [&](const ExprPtr& e) {
    if (is_op(e, OpId::k_create_tensor)) throw NotSplit();  // one scratch tensor for both
  });
}

void add_pipe(const Function& f, Halves& halves, ir::Arch arch, int64_t slots) {
  const bool c2v = halves[kVector].receives, v2c = halves[kCube].receives;
  if (!c2v && !v2c) throw NotSplit();
  const int64_t slot = std::max(halves[kCube].slot_bytes, halves[kVector].slot_bytes);
  for (const Side s : kSides) {
    CodeBuilder b(*halves[s].fn, arch, ir::kPlaceKernel, f.span);
    std::array<ExprPtr, 2> buffer{b.index(0), b.index(0)};  // cube to vector, vector to cube
    const std::string peer = f.name + (s == kCube ? "_aiv" : "_aic");
    for (const int d : {0, 1}) {
      if (!(d == 0 ? c2v : v2c)) continue;
      const std::string name = f.name + (d == 0 ? "_c2v" : "_v2c");
      const bool consumer = (d == 0) == (s == kVector);
      const ExprPtr made =
          consumer ? b.op(OpId::k_reserve_buffer, {b.text(name), b.index(slots * slot), b.index(-1)})
                   : b.op(OpId::k_import_peer_buffer, {b.text(name), b.text(peer)});
      buffer[static_cast<size_t>(d)] = CodeBuilder::ref(b.let(consumer ? "ring" : "peer", made));
    }
    b.eval(b.op(s == kCube ? OpId::k_aic_initialize_pipe : OpId::k_aiv_initialize_pipe,
                {buffer[0], buffer[1], b.index((c2v ? 1 : 0) + (v2c ? 2 : 0)), b.index(slot), b.index(slots)},
                ir::kFormSystem));
    Block& body = halves[s].fn->body;
    body.insert(body.begin(), b.code.begin(), b.code.end());
  }
}

std::vector<size_t> keep_own_params(const Function& f, Function& fn) {
  std::unordered_set<const Var*> used;
  const auto mention = [&](const ExprPtr& e) {
    walk_expr(e, [&](const ExprPtr& x) {
      if (x->kind == ExprKind::kVar) used.insert(x->var.get());
    });
  };
  walk_exprs(fn.body, mention);
  auto access = accesses(fn.body, fn.params);
  for (const auto& v : fn.vars) {
    for (const auto* dims : {&v->type->shape, &v->type->valid}) {
      for (const auto& d : *dims) {
        if (d.expr) mention(d.expr);
      }
    }
  }
  std::vector<size_t> kept;
  std::vector<VarPtr> params;
  std::vector<ir::ParamDirection> directions;
  for (size_t i = 0; i < fn.params.size(); ++i) {
    if (!used.count(fn.params[i].get())) continue;
    kept.push_back(i);
    params.push_back(fn.params[i]);
    const bool out = access[fn.params[i].get()].write;
    directions.push_back(out ? f.directions[i] : ir::ParamDirection::kIn);
  }
  fn.params = std::move(params);
  fn.directions = directions;
  fn.effective_directions = std::move(directions);
  return kept;
}

}  // namespace pypto::passes
