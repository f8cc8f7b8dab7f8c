// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Which dimensions of a JIT function's parameters are dynamic (01 L-69).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

namespace {

/// Finds what makes dimensions of a function's parameters dynamic (01 L-69).
class DynamicScan {
 public:
  DynamicScan(ProgramBuilder& program, const std::shared_ptr<FunctionSource>& source)
      : program_(program), source_(source) {}

  ProgramBuilder::DynamicDims run() {
    const auto& def = *source_->def;
    for (const auto& p : def.params) {
      params_.insert(p.name);
      if (p.annotation) annotation(p.name, *p.annotation);
    }
    body(def.body);
    return std::move(out_);
  }

 private:
  HostValue host(const syn::Expr& e) {
    if (e.kind == ExprKind::kName) {
      const auto it = local_.find(e.text);
      if (it != local_.end()) return it->second;
      return source_->host->lookup(e.text);
    }
    if (e.kind == ExprKind::kAttribute) {
      const HostValue base = host(*e.items[0]);
      if (base.kind == HostKind::kMissing) return {};
      return source_->host->attribute(base, e.text);
    }
    if (e.kind == ExprKind::kSubscript || e.kind == ExprKind::kCall) {
      const HostValue base = host(*e.items[0]);
      const bool known = base.kind == HostKind::kTuple || base.kind == HostKind::kOpaque ||
                         (base.kind == HostKind::kConstruct && base.text == "pl.dynamic");
      if (!known) return {};
      try {
        return source_->host->eval(e, {});
      } catch (const HostError&) {
        return {};
      }
    }
    return {};
  }

  void annotation(const std::string& param, const syn::Expr& e) {
    if (e.kind == ExprKind::kString) {
      const syn::ExprPtr tree = source_->host->parse_annotation(e.text, e.span);
      if (tree) annotation(param, *tree);
      return;
    }
    if (e.kind == ExprKind::kName || e.kind == ExprKind::kAttribute) {
      // A name bound to a complete annotation.
      const HostValue bound = host(e);
      if (bound.kind != HostKind::kOpaque) return;
      const HostValue text = source_->host->attribute(bound, "__pypto_annotation__");
      if (text.kind != HostKind::kString) return;
      const syn::ExprPtr tree = source_->host->parse_annotation(text.text, e.span);
      if (tree) annotation(param, *tree);
      return;
    }
    const bool applied = e.kind == ExprKind::kSubscript || (e.kind == ExprKind::kCall && e.items.size() > 1);
    if (!applied) return;
    const HostValue head = host(*e.items[0]);
    if (head.kind != HostKind::kConstruct) return;
    if (head.text == "pl.Out" || head.text == "pl.InOut" || head.text == "pl.In") {
      annotation(param, *e.items[1]);
      return;
    }
    if (head.text != "pl.Tensor" && head.text != "pld.DistributedTensor") return;
    const syn::Expr* shape = e.items[1].get();
    if (e.kind == ExprKind::kSubscript) {
      if (shape->kind != ExprKind::kTuple || shape->items.empty()) return;
      shape = shape->items[0].get();
    }
    int next = 0;
    dims(param, *shape, next);
  }

  /// The dynamic entries of a shape, numbered from `next`; `[P, *SHAPE]` spreads a bound one in place.
  void dims(const std::string& param, const syn::Expr& shape, int& next) {
    if (shape.kind == ExprKind::kList || shape.kind == ExprKind::kTuple) {
      for (const auto& i : shape.items) {
        if (i->kind == ExprKind::kStarred) {
          dims(param, *i->items[0], next);
          continue;
        }
        const HostValue v = host(*i);
        if (v.kind == HostKind::kDynVar) out_[param][next] = v.text;
        ++next;
      }
      return;
    }
    const HostValue bound = host(shape);
    for (const HostValue& v : bound.items) {
      if (v.kind == HostKind::kDynVar) out_[param][next] = v.text;
      ++next;
    }
  }

  void body(const std::vector<syn::StmtPtr>& list) {
    for (const auto& s : list) {
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && s->targets[0]->kind == ExprKind::kName &&
          s->value && s->value->kind == ExprKind::kCall) {
        const HostValue head = host(*s->value->items[0]);
        if (head.kind == HostKind::kConstruct && head.text == "pl.dynamic") {
          const HostValue v = host(*s->value);
          if (v.kind == HostKind::kDynVar) local_[s->targets[0]->text] = v;
        }
      }
      if (s->value) expr(*s->value);
      for (const auto& w : s->with_items) {
        if (w.context) expr(*w.context);
      }
      body(s->body);
      body(s->orelse);
    }
  }

  void expr(const syn::Expr& e) {
    if (e.kind == ExprKind::kCall) call(e);
    for (const auto& i : e.items) {
      if (i) expr(*i);
    }
    for (const auto& k : e.keywords) {
      if (k.value) expr(*k.value);
    }
  }

  void call(const syn::Expr& e) {
    const auto& callee = *e.items[0];
    if (callee.kind == ExprKind::kAttribute && callee.text == "bind_dynamic" &&
        callee.items[0]->kind == ExprKind::kName && params_.count(callee.items[0]->text)) {
      const syn::Expr* dim = e.items.size() > 1 ? e.items[1].get() : nullptr;
      const syn::Expr* var = e.items.size() > 2 ? e.items[2].get() : nullptr;
      for (const auto& k : e.keywords) {
        if (k.name == "dim") dim = k.value.get();
        if (k.name == "var") var = k.value.get();
      }
      if (!dim || !var) return;
      int64_t at = 0;
      bool negative = false;
      const syn::Expr* d = dim;
      if (d->kind == ExprKind::kUnary && d->text == "-") {
        negative = true;
        d = d->items[0].get();
      }
      if (d->kind == ExprKind::kInt) {
        at = d->int_value;
      } else {
        const HostValue h = host(*d);
        if (h.kind != HostKind::kInt) return;
        at = h.int_value;
      }
      const HostValue v = host(*var);
      if (v.kind != HostKind::kDynVar) return;
      // Negative dims are resolved against the rank where it is known.
      out_[callee.items[0]->text][static_cast<int>(negative ? -at : at)] = v.text;
      return;
    }
    std::shared_ptr<FunctionSource> f;
    size_t first = 1;
    const auto function_of = [&](const syn::Expr& target) {
      if (target.kind == ExprKind::kAttribute && target.items[0]->kind == ExprKind::kName &&
          target.items[0]->text == "self") {
        const HostValue h = source_->host->lookup(target.text);
        return h.kind == HostKind::kFunction ? h.function : nullptr;
      }
      const HostValue h = host(target);
      return h.kind == HostKind::kFunction ? h.function : nullptr;
    };
    const HostValue head =
        callee.kind == ExprKind::kName || callee.kind == ExprKind::kAttribute ? host(callee) : HostValue();
    if (head.kind == HostKind::kConstruct && (head.text == "pl.submit" || head.text == "pl.spmd_submit") &&
        e.items.size() > 1) {
      f = function_of(*e.items[1]);
      first = 2;
    } else {
      f = function_of(callee);
    }
    if (!f) return;
    f->ensure_loaded();
    ProgramBuilder::DynamicDims dims;
    std::vector<std::string> names;
    if (f->decl == DeclKind::kIrFunction && f->ir_function) {
      for (const auto& p : f->ir_function->params) {
        names.push_back(p->name);
        for (size_t i = 0; i < p->type->shape.size(); ++i) {
          const auto& x = p->type->shape[i].expr;
          if (x && x->kind == ir::ExprKind::kVar) dims[p->name][static_cast<int>(i)] = x->var->name;
        }
      }
    } else if (f->def) {
      dims = program_.dynamic_dims(f);
      for (const auto& p : f->def->params) {
        if (p.name != "self") names.push_back(p.name);
      }
    }
    const auto pass = [&](const std::string& param, const syn::Expr& arg) {
      const syn::Expr* a = &arg;
      if (a->kind == ExprKind::kCall && a->items.size() == 2) {
        const HostValue h = host(*a->items[0]);
        if (h.kind == HostKind::kConstruct && h.text == "pl.no_dep") a = a->items[1].get();
      }
      if (a->kind != ExprKind::kName || !params_.count(a->text)) return;
      for (const auto& [dim, name] : dims[param]) {
        auto& mine = out_[a->text];
        if (!mine.count(dim)) mine[dim] = name;
      }
    };
    for (size_t i = first; i < e.items.size() && i - first < names.size(); ++i)
      pass(names[i - first], *e.items[i]);
    for (const auto& k : e.keywords) {
      if (std::find(names.begin(), names.end(), k.name) != names.end()) pass(k.name, *k.value);
    }
  }

  ProgramBuilder& program_;
  std::shared_ptr<FunctionSource> source_;
  std::set<std::string> params_;
  std::map<std::string, HostValue> local_;
  ProgramBuilder::DynamicDims out_;
};

}  // namespace

const ProgramBuilder::DynamicDims& ProgramBuilder::dynamic_dims(
    const std::shared_ptr<FunctionSource>& source) {
  const auto it = dynamic_dims_.find(source.get());
  if (it != dynamic_dims_.end()) return it->second;
  dynamic_dims_[source.get()] = {};  // a circle of calls ends here
  source->ensure_loaded();
  if (source->def && source->host) {
    DynamicDims found = DynamicScan(*this, source).run();
    dynamic_dims_[source.get()] = std::move(found);
  }
  return dynamic_dims_[source.get()];
}

}  // namespace pypto::sema
