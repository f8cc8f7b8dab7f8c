// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Counted loops (01 L-93 - L-95, L-99, L-104).
namespace pypto::sema {

using syn::ExprKind;

namespace {

bool is_loop_construct(const std::string& n) {
  return n == "pl.range" || n == "pl.parallel" || n == "pl.pipeline" || n == "pl.unroll" ||
         n == "pl.while_" || n == "pl.spmd" || n == "pl.split_aiv";
}

}  // namespace

void FunctionBuilder::exec_for(const syn::Stmt& s) {
  if (!s.orelse.empty()) {
    reject(ErrorClass::kUnsupportedFeatureError, s.span, "Loop 'else' is not supported",
           "put the statements after the loop");
  }
  const auto& iter = *s.value;
  Callee callee;
  if (iter.kind == ExprKind::kCall) callee = resolve_callee(*iter.items[0]);
  if (callee.kind != Callee::Kind::kConstruct || !is_loop_construct(callee.name)) {
    if (callee.kind == Callee::Kind::kUnknown && iter.kind == ExprKind::kCall &&
        iter.items[0]->kind == ExprKind::kAttribute) {
      const HostValue base = resolve_host(*iter.items[0]->items[0]);
      if (base.kind == HostKind::kModule && base.text == "pl") {
        const std::string guess = nearest(
            iter.items[0]->text, {"range", "parallel", "pipeline", "unroll", "while_", "spmd", "split_aiv"});
        reject(
            ErrorClass::kParserSyntaxError, iter.span,
            "For loop must use pl.range(), pl.parallel(), pl.pipeline(), pl.unroll(), pl.while_(), pl.spmd() "
            "or pl.split_aiv(); it must use pl.range() or one of these, got '" +
                source_text(iter) + "'",
            guess.empty() ? "" : "did you mean 'pl." + guess + "'?");
      }
    }
    reject(ErrorClass::kParserSyntaxError, iter.span,
           "For loop must use pl.range() or another pl iterator, got '" + source_text(iter) + "'",
           "use pl.range, pl.parallel, pl.pipeline, pl.unroll, pl.while_, pl.spmd or pl.split_aiv; pl.unroll "
           "repeats the body at compile time");
  }
  if (callee.name == "pl.spmd") return exec_spmd(s, iter, nullptr, true);
  if (callee.name == "pl.split_aiv") return exec_split_aiv(s, iter);
  if (callee.name == "pl.while_") return exec_while_carry(s, iter);
  if (callee.name == "pl.unroll") return exec_unroll(s, iter);
  exec_range(s, callee.name, iter);
}

namespace {

/// Arguments of an iterator, checked against what it accepts (01 L-95).
struct IteratorArgs {
  std::vector<const syn::Expr*> bounds;
  const syn::Expr* init_values = nullptr;
  const syn::Expr* stage = nullptr;
  const syn::Expr* attrs = nullptr;
};

IteratorArgs iterator_args(const std::string& name, const syn::Expr& call) {
  IteratorArgs out;
  for (size_t i = 1; i < call.items.size(); ++i) out.bounds.push_back(call.items[i].get());
  for (const auto& k : call.keywords) {
    const Span& span = k.value->span;
    // The defaults of the signature (01 L-93).
    if ((k.name == "init_values" || k.name == "attrs") && k.value->kind == ExprKind::kNone) continue;
    if (k.name == "init_values") {
      if (name == "pl.unroll") {
        reject(ErrorClass::kParserSyntaxError, span, "pl.unroll() cannot be combined with init_values",
               "rebind the name in the body: every copy sees the previous one's value");
      }
      out.init_values = k.value.get();
    } else if (k.name == "attrs") {
      out.attrs = k.value.get();
    } else if (k.name == "stage") {
      if (name != "pl.pipeline") {
        reject(ErrorClass::kParserSyntaxError, span,
               "stage= is only supported on pl.pipeline(), not " + name + "()");
      }
      out.stage = k.value.get();
    } else {
      const std::string guess = nearest(k.name, {"init_values", "attrs", "stage"});
      reject(ErrorClass::kParserSyntaxError, span,
             k.name.empty() ? "'**' arguments are not supported in " + name + "()"
                            : "Unknown keyword argument '" + k.name + "' in " + name + "()",
             guess.empty() ? "" : "did you mean '" + guess + "'?");
    }
  }
  if (out.bounds.empty()) {
    reject(ErrorClass::kParserSyntaxError, call.span, name + "() requires at least 1 argument");
  }
  if (out.bounds.size() > 3) {
    reject(ErrorClass::kParserSyntaxError, call.span, name + "() takes at most 3 positional arguments");
  }
  return out;
}

}  // namespace

void FunctionBuilder::exec_unroll(const syn::Stmt& s, const syn::Expr& call) {
  const IteratorArgs args = iterator_args("pl.unroll", call);
  if (s.targets[0]->kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, s.targets[0]->span,
           "pl.unroll() loop target must be a single name");
  }
  int64_t bounds[3] = {0, 0, 1};
  std::vector<int64_t> given;
  for (const auto* b : args.bounds) {
    const auto n = try_constant_int(eval(*b));
    if (!n) {
      reject(ErrorClass::kParserSyntaxError, b->span,
             "pl.unroll() requires compile-time constant integer bounds, got " + source_text(*b),
             "use pl.range for run-time bounds");
    }
    given.push_back(*n);
  }
  if (given.size() == 1) {
    bounds[1] = given[0];
  } else {
    for (size_t i = 0; i < given.size(); ++i) bounds[i] = given[i];
  }
  if (bounds[2] == 0) reject(ErrorClass::kParserSyntaxError, call.span, "pl.unroll() step must not be zero");
  const int64_t span = bounds[2] > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
  const int64_t step = std::abs(bounds[2]);
  const int64_t trips = span > 0 ? (span + step - 1) / step : 0;
  if (trips > 1024) {
    reject(ErrorClass::kValueError, call.span,
           "pl.unroll() of " + std::to_string(trips) + " iterations exceeds maximum allowed 1024",
           "use pl.range");
  }
  const std::string& name = s.targets[0]->text;
  const BindingPtr before = find_binding(name);
  for (int64_t k = 0; k < trips && flow().live; ++k) {
    LoopInfo loop;
    loop.kind = LoopInfo::Kind::kUnroll;
    loop.span = s.span;
    loop.frame = frame_;
    loop.regions = regions_.size();
    bind_value(name,
               Value::of(ir::int_const(bounds[0] + k * bounds[2], DType::kIndex, s.targets[0]->span, true)),
               s.targets[0]->span);
    loops_.push_back(&loop);
    exec_block(s.body);
    loops_.pop_back();
  }
  if (before) {
    bind(name, before);
  } else if (const BindingPtr b = find_binding(name)) {
    auto gone = std::make_shared<Binding>(*b);
    gone->undefined = "it is the variable of the loop at line " + std::to_string(s.span.line) +
                      " and does not exist after it";
    bind(name, gone);
  }
}

void FunctionBuilder::exec_range(const syn::Stmt& s, const std::string& iterator, const syn::Expr& call) {
  const IteratorArgs args = iterator_args(iterator, call);
  auto stmt = make(ir::StmtKind::kFor, s.span);
  LoopInfo loop;
  loop.span = s.span;
  loop.frame = frame_;
  loop.regions = regions_.size();
  loop.body = &s.body;
  if (iterator == "pl.parallel") {
    loop.kind = LoopInfo::Kind::kParallel;
    stmt->for_kind = ir::ForKind::kParallel;
  } else if (iterator == "pl.pipeline") {
    loop.kind = LoopInfo::Kind::kPipeline;
    stmt->for_kind = ir::ForKind::kPipeline;
    std::optional<int64_t> stage;
    if (args.stage) stage = try_constant_int(eval(*args.stage));
    if (!stage || *stage <= 0) {
      reject(ErrorClass::kParserSyntaxError, args.stage ? args.stage->span : call.span,
             "pl.pipeline() requires stage= (positive integer)", "for instance pl.pipeline(n, stage=2)");
    }
    stmt->stage = static_cast<int>(*stage);
    loop.stage = stmt->stage;
  }
  if (args.attrs) {
    if (args.attrs->kind != ExprKind::kDict) {
      reject(ErrorClass::kParserSyntaxError, args.attrs->span, "attrs= must be a dict literal");
    }
    for (size_t i = 0; i + 1 < args.attrs->items.size(); i += 2) {
      const auto* key = args.attrs->items[i].get();
      if (!key || key->kind != ExprKind::kString) {
        reject(ErrorClass::kParserSyntaxError, args.attrs->span, "attrs= keys must be string literals");
      }
      stmt->loop_attrs.emplace_back(key->text, source_text(*args.attrs->items[i + 1]));
    }
  }
  // Target.
  const auto& target = *s.targets[0];
  std::vector<std::string> carried;
  if (target.kind == ExprKind::kName) {
    loop.variable = target.text;
    if (args.init_values) {
      reject(ErrorClass::kParserSyntaxError, target.span,
             "For loop target must be a tuple when init_values is provided",
             "write 'for i, (a, b) in " + iterator + "(..., init_values=(a0, b0)):'");
    }
  } else {
    const bool shape =
        target.kind == ExprKind::kTuple && target.items.size() == 2 &&
        target.items[0]->kind == ExprKind::kName &&
        (target.items[1]->kind == ExprKind::kTuple || target.items[1]->kind == ExprKind::kList);
    if (!shape) {
      reject(ErrorClass::kParserSyntaxError, target.span,
             "For loop target must be a name or (name, (carried, ...)), got '" + source_text(target) + "'");
    }
    for (const auto& c : target.items[1]->items) {
      if (c->kind != ExprKind::kName) {
        reject(ErrorClass::kParserSyntaxError, c->span, "For loop target must be plain names");
      }
      carried.push_back(c->text);
    }
    if (!args.init_values) {
      reject(ErrorClass::kParserSyntaxError, target.span,
             "For loop target must be a tuple when init_values is provided, and a name when it is not: "
             "init_values is missing",
             "add init_values=(...), or write 'for " + target.items[0]->text + " in ...'");
    }
    loop.variable = target.items[0]->text;
  }
  // Bounds, evaluated once.
  std::vector<ExprPtr> bounds;
  for (const auto* b : args.bounds) {
    const ExprPtr x = eval_expr(*b);
    if (!x->type->is_scalar() || !is_int(x->type->dtype)) {
      reject(ErrorClass::kParserTypeError, b->span,
             "Bounds of " + iterator + "() must be integer scalars, got " + ir::type_text(*x->type));
    }
    bounds.push_back(x);
  }
  const Span& cs = call.span;
  stmt->start = bounds.size() >= 2 ? bounds[0] : ir::int_const(0, DType::kIndex, cs, true);
  stmt->stop = bounds.size() >= 2 ? bounds[1] : bounds[0];
  stmt->step = bounds.size() == 3 ? bounds[2] : ir::int_const(1, DType::kIndex, cs, true);
  if (const auto z = ir::const_int(stmt->step); z && *z == 0) {
    reject(ErrorClass::kParserSyntaxError, args.bounds[2]->span, iterator + "() step must not be zero");
  }
  DType dtype = DType::kIndex;
  {
    DType typed = DType::kNone;
    bool all = true;
    for (const auto& b : bounds) {
      const bool constant = b->kind == ir::ExprKind::kInt;
      if (!constant || b->untyped || b->type->dtype == DType::kIndex ||
          (typed != DType::kNone && typed != b->type->dtype)) {
        all = false;
      }
      typed = b->type->dtype;
    }
    if (all && typed != DType::kNone) dtype = typed;
  }
  std::vector<ExprPtr> inits;
  std::vector<std::string> init_names;
  if (args.init_values) {
    const auto& iv = *args.init_values;
    Value v;
    if (iv.kind == ExprKind::kTuple || iv.kind == ExprKind::kList) {
      v = eval(iv);
      for (const auto& i : iv.items) init_names.push_back(i->kind == ExprKind::kName ? i->text : "");
    } else {
      v = eval(iv);
      if (!v.is_tuple()) {
        reject(ErrorClass::kParserSyntaxError, iv.span, "init_values must be a tuple or list of values",
               "write init_values=(a, b)");
      }
      init_names.resize(v.items.size());
    }
    for (const auto& i : v.items) inits.push_back(to_expr(i, iv.span));
    if (inits.size() != carried.size()) {
      reject(ErrorClass::kParserSyntaxError, target.span,
             "Mismatch: " + std::to_string(carried.size()) + " iter_args but " +
                 std::to_string(inits.size()) + " init_values");
    }
    loop.explicit_carry = true;
  }
  loop.start = stmt->start;
  loop.stop = stmt->stop;
  loop.step = stmt->step;
  loop.carried = carried;
  loop.var =
      fn->add_var(variable_name(loop.variable), ir::scalar_type(dtype), ir::VarKind::kLoop, target.span);
  stmt->loop_var = loop.var;
  stmt->explicit_carry = loop.explicit_carry;
  const bool control = place() != ir::kPlaceKernel;
  for (size_t i = 0; i < inits.size(); ++i) {
    ExprPtr& e = inits[i];
    if (e->untyped) e = ir::convert_scalar(e, e->type->dtype, "a literal");
    const ir::Type& t = *e->type;
    if (control && loop.kind == LoopInfo::Kind::kParallel && t.dtype != DType::kTaskId &&
        (t.is_scalar() || t.kind == ir::TypeKind::kArray)) {
      reject(ErrorClass::kParserTypeError, s.span,
             "'" + carried[i] + "' is carried from iteration to iteration of pl.parallel() at line " +
                 std::to_string(s.span.line) + ", whose iterations are independent",
             "use pl.range, or an array of task ids written at the loop index");
    }
    loop.carry_vars.push_back(variable(carried[i], e->type, target.span, ir::VarKind::kCarry));
    loop.carry_types.push_back(e->type);
  }
  const bool device = kernel_region() && (reads_device_data(stmt->start) || reads_device_data(stmt->stop));
  device_conditions_ += device ? 1 : 0;
  std::set<int> params;
  const bool ranked = rank_dependent(stmt->start, &params) | rank_dependent(stmt->stop, &params);
  rank_conditions_.push_back({call.span, source_text(call), ranked, params});
  const bool once = at_least_once(stmt->start, stmt->stop, stmt->step);
  const Env outer_names = flow().names;
  run_loop(
      loop, stmt, s.body,
      [&] {
        auto b = std::make_shared<Binding>();
        b->var = loop.var;
        b->type = loop.var->type;
        b->span = target.span;
        b->loop_variable = true;
        const auto low = lower_bound(stmt->start);
        const auto down = ir::const_int(stmt->step);
        if (low && down && *down > 0) b->lower = low;
        bind(loop.variable, b);
        bind_carries(loop, target.span);
      },
      once, false, *block_);
  rank_conditions_.pop_back();
  device_conditions_ -= device ? 1 : 0;
  finish_carries(loop, stmt, inits, init_names, once);
  emit(stmt);
  if (control && loop.kind == LoopInfo::Kind::kParallel) collect_parallel_tasks(loop, outer_names);
}

/// A handle rebound in a parallel loop stands for the tasks of all iterations (01 L-135); the emitter keeps
/// them all.
void FunctionBuilder::collect_parallel_tasks(const LoopInfo& loop, const Env& before) {
  std::vector<std::string> names;
  for (const auto& [name, b] : flow().names) {
    if (name[0] == '%' || b->kind != Binding::Kind::kVar || !b->type->is_scalar() ||
        b->type->dtype != DType::kTaskId) {
      continue;
    }
    const auto it = before.find(name);
    const bool carried = std::find(loop.carried.begin(), loop.carried.end(), name) != loop.carried.end();
    if (carried || (it != before.end() && it->second == b) || !loop.assigned_tasks.count(name)) continue;
    names.push_back(name);
  }
  const auto a = ir::const_int(loop.start), z = ir::const_int(loop.stop), d = ir::const_int(loop.step);
  for (const auto& name : names) {
    const BindingPtr b = find_binding(name);
    auto n = std::make_shared<Binding>(*b);
    n->undefined.clear();
    if (!a || !z || !d || *d == 0) {
      n->kind = Binding::Kind::kPoison;
      n->poison = "Task handle '" + name + "' stands for all iterations of the pl.parallel() loop at line " +
                  std::to_string(loop.span.line) +
                  ", whose trip count is not a compile-time constant; store the handles in an array: tids = "
                  "pl.array.create(N, pl.TASK_ID); tids[i] = " +
                  name;
      bind(name, n);
      continue;
    }
    bind(name, n);
  }
}

}  // namespace pypto::sema
