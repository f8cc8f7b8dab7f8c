// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// What loops carry: implicit carries by reading the body until its types settle (01 L-96), explicit ones (L-97), while
/// loops (L-102), jumps (L-103).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

FunctionBuilder::Undo FunctionBuilder::undo_point() const {
    Undo u;
    u.mark = program_.mark();
    u.vars = fn->vars.size();
    u.table = frame_->vars;
    for (const auto& v : fn->vars) u.var_types.push_back(v->type);
    u.renamed = frame_->renamed;
    u.used = used_names_;
    u.next_region = next_region_;
    u.buffers = buffers_;
    return u;
}

void FunctionBuilder::undo(const Undo& u) {
    program_.rollback(u.mark);
    fn->vars.resize(u.vars);
    frame_->vars = u.table;
    for (size_t i = 0; i < u.vars; ++i) fn->vars[i]->type = u.var_types[i];
    frame_->renamed = u.renamed;
    used_names_ = u.used;
    next_region_ = u.next_region;
    buffers_ = u.buffers;
    // Symbols made by the discarded reading stay: they are facts of the function.
    for (const auto& s : fn->symbols) {
        if (std::find(fn->vars.begin(), fn->vars.end(), s) == fn->vars.end()) {
            s->id = static_cast<int>(fn->vars.size());
            fn->vars.push_back(s);
        }
    }
}

/// Whether a name enters the body differently from what was assumed.
bool FunctionBuilder::changed(const Binding& a, const Binding& b, size_t serial0) {
    if (a.kind != b.kind || a.var != b.var || a.undefined.empty() != b.undefined.empty() || a.blocks != b.blocks) {
        return true;
    }
    if (a.lower != b.lower || static_cast<bool>(a.constant) != static_cast<bool>(b.constant)) return true;
    for (const int r : b.regions) {
        if (std::find(a.regions.begin(), a.regions.end(), r) == a.regions.end()) return true;
    }
    if (a.kind != Binding::Kind::kVar) return false;
    const ir::Type& x = *a.type;
    const ir::Type& y = *b.type;
    if (x.space != y.space || x.place != y.place || x.pad != y.pad || !same_dims(x.shape, y.shape) ||
        !same_dims(x.valid, y.valid)) {
        return true;
    }
    const auto significant = [&](const std::shared_ptr<ir::Storage>& s, bool* inside) {
        std::set<const ir::Storage*> out;
        *inside = false;
        if (!s) return out;
        for (const auto& leaf : leaves(s)) {
            if (serial(leaf.get()) >= serial0) {
                *inside = true;
            } else {
                out.insert(leaf.get());
            }
        }
        return out;
    };
    bool ia = false;
    bool ib = false;
    const auto sa = significant(x.storage, &ia);
    const auto sb = significant(y.storage, &ib);
    return sa != sb || ia != ib;
}

void FunctionBuilder::run_loop(LoopInfo& loop, const ir::StmtPtr& stmt, const std::vector<syn::StmtPtr>& body,
                               const std::function<void()>& read, bool once, bool endless, ir::Block& before) {
    std::set<std::string> assigned;
    assigned_names(body, assigned);
    const Flow original = flow();
    Flow entry = original;
    for (const auto& name : assigned) {
        const auto it = entry.names.find(name);
        if (it == entry.names.end() || !it->second->undefined.empty()) continue;
        const Binding& b = *it->second;
        if (b.kind == Binding::Kind::kVar && (b.constant || b.lower)) {
            auto n = std::make_shared<Binding>(b);
            n->constant = nullptr;
            n->lower.reset();
            it->second = n;
        } else if (b.kind == Binding::Kind::kValue && b.value.is_expr() && b.value.is_scalar() &&
                   name != loop.variable) {
            // A compile-time value that the body replaces becomes a variable here.
            ExprPtr e = b.value.expr;
            if (e->untyped) {
                auto typed = std::make_shared<ir::Expr>(*e);
                typed->untyped = false;
                e = typed;
            }
            auto n = std::make_shared<Binding>(b);
            n->kind = Binding::Kind::kVar;
            n->var = variable(name, e->type, b.span);
            n->type = e->type;
            n->value = {};
            auto s = make(ir::StmtKind::kAssign, loop.span);
            s->targets = {n->var};
            s->value = e;
            before.push_back(s);
            it->second = n;
        }
    }
    const size_t serial0 = next_serial_;
    const std::string line = std::to_string(loop.span.line);
    std::vector<LoopInfo::Edge> back;
    Flow end;
    for (int attempt = 0;; ++attempt) {
        const Undo point = undo_point();
        loop.breaks.clear();
        loop.continues.clear();
        loop.entry_reads.clear();
        loop.entry_read_spans.clear();
        loop.yielded = false;
        loop.results.clear();
        loop.result_names.clear();
        loop.result_bindings.clear();
        loop.jumps.clear();
        stmt->body.clear();
        flow() = entry;
        flow().live = true;
        ir::Block* outer = block_;
        block_ = &stmt->body;
        loops_.push_back(&loop);
        read();
        loop.entry = flow().names;
        exec_block(body);
        loops_.pop_back();
        block_ = outer;
        end = flow();
        back = loop.continues;
        if (end.live) back.push_back({end, &stmt->body, false});
        // What the body leaves must be what it was read with.
        bool again = false;
        Flow next = entry;
        for (auto& [name, binding] : next.names) {
            if (name == loop.variable ||
                std::find(loop.carried.begin(), loop.carried.end(), name) != loop.carried.end()) {
                continue;
            }
            for (const auto& edge : back) {
                const auto it = edge.flow.names.find(name);
                if (it == edge.flow.names.end() || it->second == binding) continue;
                Site site;
                site.block_a = &before;
                site.block_b = edge.block;
                site.before_last_b = edge.before_last;
                site.before = &entry.names;
                site.span = loop.span;
                site.loop = true;
                const BindingPtr joined = join(name, binding, it->second, site);
                if (changed(*binding, *joined, serial0)) again = true;
                binding = joined;
            }
        }
        if (!again || attempt >= 8) {
            for (const auto& [name, b] : entry.names) {
                const auto it = next.names.find(name);
                if (b->kind == Binding::Kind::kVar && it->second->kind == Binding::Kind::kVar && b->type->storage &&
                    it->second->type->storage) {
                    add_leaves(b->type->storage, it->second->type->storage);
                }
            }
            break;
        }
        undo(point);
        entry = next;
        for (auto& [name, b] : entry.names) {
            if (b->constant) {
                auto n = std::make_shared<Binding>(*b);
                n->constant = nullptr;
                b = n;
            }
        }
    }
    if (loop.kind == LoopInfo::Kind::kParallel) check_parallel(loop, end);
    for (const auto& name : assigned) loop.assigned_tasks.insert(name);

    // A name that first appears in the body and is the storage of an outer tensor is that tensor if no iteration runs.
    if (!once && !endless) {
        for (const auto& edge : back) {
            for (const auto& [name, b] : edge.flow.names) {
                if (entry.names.count(name) || b->kind != Binding::Kind::kVar || !b->type->is_tensor() ||
                    !b->undefined.empty() || !b->type->storage || name == loop.variable) {
                    continue;
                }
                const auto parts = leaves(b->type->storage);
                if (parts.size() != 1 || serial(parts[0].get()) >= serial0) continue;
                for (const auto& [root, r] : entry.names) {
                    if (r->kind != Binding::Kind::kVar || !r->type->is_tensor() || !r->undefined.empty() ||
                        r->type->storage != b->type->storage || !same_dims(r->type->shape, b->type->shape)) {
                        continue;
                    }
                    auto s = make(ir::StmtKind::kAssign, loop.span);
                    s->targets = {b->var};
                    s->value = ir::var_ref(r->var, loop.span);
                    before.push_back(s);
                    auto n = std::make_shared<Binding>(*r);
                    n->var = b->var;
                    n->span = b->span;
                    entry.names[name] = n;
                    break;
                }
            }
        }
    }
    std::string bounds;
    if (loop.stop) {
        const auto text = [](const ExprPtr& e) { return ir::dim_text(ir::const_int(e) ? ir::Dim(*ir::const_int(e))
                                                                                     : ir::Dim(e)); };
        bounds = " (bounds " + text(loop.start) + " to " + text(loop.stop) + ")";
    }
    const std::string zero = "the loop at line " + line + bounds + " may run zero times";
    // After the loop: the ways out.
    Flow out;
    out.live = false;
    const auto leave = [&](Flow f, ir::Block* block, bool before_last, const std::string& missing) {
        if (!f.live) return;
        // The loop variable ends with the loop: nothing of it is handed on.
        if (!loop.variable.empty()) {
            const auto it = entry.names.find(loop.variable);
            if (it != entry.names.end()) {
                f.names[loop.variable] = it->second;
            } else {
                f.names.erase(loop.variable);
            }
        }
        if (!out.live) {
            out = f;
            return;
        }
        Site site;
        site.block_b = block;
        site.before_last_b = before_last;
        site.before = &entry.names;
        site.span = loop.span;
        site.missing_a = missing;
        site.missing_b = missing;
        site.loop = true;
        out = merge(out, f, site);
    };
    if (!endless) {
        if (!once) {
            Flow none = entry;
            none.live = true;
            leave(none, nullptr, false, zero);
        }
        for (const auto& edge : back) leave(edge.flow, edge.block, edge.before_last, zero);
        // Every iteration jumps out: the loop is left by the jumps alone.
    }
    for (const auto& edge : loop.breaks) {
        leave(edge.flow, edge.block, edge.before_last,
              once || endless ? "a 'break' of the loop at line " + line + " leaves it before the assignment" : zero);
    }
    flow() = out;
    if (!out.live && (endless || once) && loop.breaks.empty() && back.empty()) {
        flow() = end;
        flow().live = false;
    }
    // The loop variable ends with the loop.
    if (!loop.variable.empty()) {
        const auto it = original.names.find(loop.variable);
        if (it != original.names.end()) {
            flow().names[loop.variable] = it->second;
        } else if (const auto v = loop.entry.find(loop.variable); v != loop.entry.end()) {
            auto gone = std::make_shared<Binding>(*v->second);
            gone->kind = Binding::Kind::kVar;
            gone->undefined = "it is the variable of the loop at line " + line + " and does not exist after it";
            flow().names[loop.variable] = gone;
        }
    }
}

void FunctionBuilder::check_parallel(LoopInfo& loop, const Flow& end) {
    if (place() == ir::kPlaceKernel || !end.live) return;
    for (const auto& name : loop.entry_reads) {
        const auto a = loop.entry.find(name);
        const auto b = end.names.find(name);
        if (a == loop.entry.end() || b == end.names.end() || a->second == b->second) continue;
        if (name == loop.variable || b->second->kind != Binding::Kind::kVar) continue;
        const ir::Type& t = *b->second->type;
        const bool kind = t.is_scalar() || t.kind == ir::TypeKind::kArray;
        if (!kind || t.dtype == DType::kTaskId) continue;
        reject(ErrorClass::kParserTypeError, loop.entry_read_spans[name],
               "'" + name + "' is carried from iteration to iteration of pl.parallel() at line " +
                   std::to_string(loop.span.line) + ", whose iterations are independent",
               "use pl.range, or compute the value from the loop variable", {{"it is rebound", b->second->span}});
    }
}

// ------------------------------------------------------------------ explicit carries

void FunctionBuilder::bind_carries(LoopInfo& loop, const Span& span) {
    for (size_t i = 0; i < loop.carried.size(); ++i) {
        auto b = std::make_shared<Binding>();
        b->var = loop.carry_vars[i];
        b->type = loop.carry_types[i];
        b->span = span;
        if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
            b->regions = {region->id};
            b->blocks = region->blocks;
        }
        bind(loop.carried[i], b);
    }
}

Value FunctionBuilder::eval_yield(const syn::Expr& call, const std::vector<std::string>& names, const Span& span) {
    if (!call.keywords.empty()) {
        reject(ErrorClass::kParserSyntaxError, span, "pl.yield_ takes positional arguments only");
    }
    const size_t values = call.items.size() - 1;
    if (values == 0) reject(ErrorClass::kParserSyntaxError, span, "pl.yield_ requires at least 1 value");
    const bool branch = !if_yields_.empty() && if_yields_.back()->loops == loops_.size();
    if (!branch && (loops_.size() == frame_->loop_base || !loops_.back()->explicit_carry)) {
        reject(ErrorClass::kParserSyntaxError, span,
               "pl.yield_ is only valid at the end of a loop with init_values, or of both arms of an 'if'");
    }
    if (names.empty()) {
        reject(ErrorClass::kParserSyntaxError, span, "This pl.yield_ has no names: a loop or branch requires an "
                                                     "assignment-form pl.yield_", "write 'x = pl.yield_(value)'");
    }
    if (names.size() != values) {
        reject(ErrorClass::kParserSyntaxError, span,
               "Mismatch: pl.yield_ has " + std::to_string(values) + " value(s) but " + std::to_string(names.size()) +
                   " name(s)");
    }
    if (!branch) {
        loop_yield(*loops_.back(), names, call, span);
        return {};
    }
    if (values > 5) reject(ErrorClass::kParserSyntaxError, span, "pl.yield_ in an 'if' takes at most 5 values");
    IfYield& y = *if_yields_.back();
    if (!y.names.empty() && y.names != names) {
        reject(ErrorClass::kParserSyntaxError, span,
               "The arms of this 'if' must yield to the same names: the 'if' arm yields " +
                   std::to_string(y.names.size()) + " value(s) (first '" + y.names[0] + "'), the 'else' arm " +
                   std::to_string(names.size()) + " (first '" + names[0] + "')",
               {}, {{"the 'if' arm yields", y.span}});
    }
    std::vector<const syn::Expr*> list;
    for (size_t i = 1; i < call.items.size(); ++i) list.push_back(call.items[i].get());
    const std::vector<Value> got = eval_operands(list);
    auto stmt = make(ir::StmtKind::kYield, span);
    std::vector<std::pair<std::string, BindingPtr>> bindings;
    std::vector<TypePtr> types;
    for (size_t i = 0; i < names.size(); ++i) {
        ExprPtr e = to_expr(got[i], span);
        if (e->untyped) {
            auto typed = std::make_shared<ir::Expr>(*e);
            typed->untyped = false;
            e = typed;
        }
        if (i < y.types.size() && !meets(*y.types[i], *e->type)) {
            reject(ErrorClass::kParserTypeError, list[i]->span,
                   "The arms of this 'if' yield different types to '" + names[i] + "': the 'if' arm " +
                       ir::type_text(*y.types[i]) + ", the 'else' arm " + ir::type_text(*e->type),
                   {}, {{"the 'if' arm yields", y.span}});
        }
        types.push_back(e->type);
        const VarPtr var = variable(names[i], e->type, span);
        stmt->targets.push_back(var);
        stmt->values.push_back(e);
        auto b = std::make_shared<Binding>();
        b->var = var;
        b->type = e->type;
        b->span = span;
        if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
            b->regions = {region->id};
            b->blocks = region->blocks;
        }
        if (e->type->is_scalar() && kernel_region() && (device_conditions_ > 0 || reads_device_data(e))) {
            device_data_.insert(var.get());
        }
        bindings.emplace_back(names[i], b);
    }
    emit(stmt);
    for (auto& [n, b] : bindings) bind(n, b);
    if (y.names.empty()) {
        y.names = names;
        y.types = types;
        y.span = span;
    }
    y.seen = true;
    return {};
}

void FunctionBuilder::loop_yield(LoopInfo& loop, const std::vector<std::string>& names, const syn::Expr& call,
                                 const Span& span) {
    if (names.size() != loop.carried.size()) {
        reject(ErrorClass::kParserSyntaxError, span,
               "Mismatch: the loop carries " + std::to_string(loop.carried.size()) + " value(s) but pl.yield_ has " +
                   std::to_string(names.size()));
    }
    std::vector<const syn::Expr*> list;
    for (size_t i = 1; i < call.items.size(); ++i) list.push_back(call.items[i].get());
    const std::vector<Value> got = eval_operands(list);
    auto stmt = make(ir::StmtKind::kYield, span);
    const bool first = !loop.yielded;
    for (size_t i = 0; i < names.size(); ++i) {
        ExprPtr e = to_expr(got[i], list[i]->span);
        const TypePtr& want = loop.carry_types[i];
        if (e->untyped && want->is_scalar() && want->dtype != DType::kTaskId) {
            e = ir::convert_scalar(e, want->dtype, "carried value '" + loop.carried[i] + "'");
        }
        bool move = false;
        if (!meets(*want, *e->type, &move)) {
            reject(ErrorClass::kParserTypeError, list[i]->span,
                   "Cannot reassign '" + loop.carried[i] + "' with a different type: was " + ir::type_text(*want) +
                       ", got " + ir::type_text(*e->type),
                   "a carried value keeps one type", {{"the loop", loop.span}});
        }
        if (want->is_window() && e->type->storage && want->storage && e->type->storage != want->storage &&
            !e->type->storage->name.empty() && !want->storage->name.empty()) {
            reject(ErrorClass::kParserTypeError, list[i]->span,
                   "X-17: Rebinding loop-carried DistributedTensor '" + loop.carried[i] + "' to a different buffer: was '" +
                       want->storage->name + "', got '" + e->type->storage->name + "'",
                   "keep one buffer per carried name");
        }
        if (move) {
            ir::AttrMap attrs;
            attrs.set(ir::AttrKey::k_target_memory, static_cast<int64_t>(want->space));
            auto t = std::make_shared<ir::Type>(*e->type);
            t->space = want->space;
            e = ir::op_expr(ir::OpId::k_move, {e, nullptr, nullptr, nullptr}, attrs, t, span);
        } else if (want->is_tensor() && want->place == ir::TensorPlace::kOnChip &&
                   e->type->place != ir::TensorPlace::kOnChip) {
            e = ir::op_expr(ir::OpId::k_snapshot, {e}, {},
                            with_storage(with_place(e->type, ir::TensorPlace::kOnChip), new_storage(names[i])), span);
        }
        VarPtr var = names[i] == loop.carried[i] ? loop.carry_vars[i] : variable(names[i], e->type, span);
        stmt->targets.push_back(var);
        stmt->values.push_back(e);
        auto b = std::make_shared<Binding>();
        b->var = var;
        b->type = e->type;
        b->span = span;
        if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
            b->regions = {region->id};
            b->blocks = region->blocks;
        }
        if (e->type->is_scalar()) {
            if (kernel_region() && (device_conditions_ > 0 || reads_device_data(e))) {
                device_data_.insert(var.get());
                device_data_.insert(loop.carry_vars[i].get());
            }
            std::set<int> params;
            if (rank_dependent(e, &params)) rank_vars_.insert(var.get());
        }
        if (first) {
            loop.results.push_back(var);
            loop.result_bindings.push_back(b);
        }
    }
    if (first) {
        loop.result_names = names;
    } else if (loop.result_names != names) {
        reject(ErrorClass::kParserSyntaxError, span, "Every pl.yield_ of one loop must yield to the same names",
               {}, {{"the first pl.yield_", loop.yield_span}});
    }
    loop.yielded = true;
    loop.yield_span = span;
    emit(stmt);
    for (size_t i = 0; i < names.size(); ++i) bind(names[i], loop.result_bindings[i]);
}

void FunctionBuilder::finish_carries(LoopInfo& loop, const ir::StmtPtr& stmt, const std::vector<ExprPtr>& inits,
                                     const std::vector<std::string>& init_names) {
    if (!loop.explicit_carry) return;
    for (size_t i = 0; i < inits.size(); ++i) {
        ir::Carry c;
        c.var = loop.carry_vars[i];
        c.init = inits[i];
        c.result = loop.yielded ? loop.results[i] : c.var;
        if (!meets(*c.var->type, *inits[i]->type)) fail_internal(__FILE__, __LINE__, "carry type");
        stmt->carries.push_back(std::move(c));
    }
    if (loop.yielded) {
        for (size_t i = 0; i < loop.results.size(); ++i) {
            auto b = std::make_shared<Binding>(*loop.result_bindings[i]);
            // No iteration: the initial value.
            Site site;
            site.span = loop.span;
            b->type = join_types(b->type, inits[i]->type, site);
            b->undefined.clear();
            b->constant = nullptr;
            b->lower.reset();
            bind(loop.result_names[i], b);
        }
        for (size_t i = 0; i < init_names.size(); ++i) {
            const std::string& name = init_names[i];
            if (name.empty() || name == loop.result_names[i] || name == loop.carried[i]) continue;
            const BindingPtr b = find_binding(name);
            if (!b || b->kind != Binding::Kind::kVar || !(b->type->is_scalar() || b->type->is_tile())) continue;
            if (b->type->is_scalar() && b->type->dtype == DType::kTaskId) continue;
            auto n = std::make_shared<Binding>(*b);
            n->stale = loop.result_names[i];
            bind(name, n);
        }
    }
    for (size_t i = 0; i < loop.carried.size(); ++i) {
        const std::string& name = loop.carried[i];
        if (loop.yielded &&
            std::find(loop.result_names.begin(), loop.result_names.end(), name) != loop.result_names.end()) {
            continue;
        }
        const BindingPtr b = find_binding(name);
        auto n = std::make_shared<Binding>();
        if (b) *n = *b;
        n->kind = Binding::Kind::kVar;
        if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
            n->regions = {region->id};
            n->blocks = region->blocks;
        }
        n->var = loop.carry_vars[i];
        Site site;
        const bool own = b && b->kind == Binding::Kind::kVar && b->var == loop.carry_vars[i];
        n->type = own ? join_types(b->type, inits[i]->type, site) : loop.carry_types[i];
        n->undefined.clear();
        n->constant = nullptr;
        n->lower.reset();
        n->loop_variable = false;
        bind(name, n);
    }
    // Jumps carry on the values at the point of the jump.
    for (const auto& j : loop.jumps) {
        if (!loop.yielded) {
            j->kind = ir::StmtKind::kComment;
            j->text.clear();
            j->targets.clear();
            j->values.clear();
            continue;
        }
        j->targets = loop.results;
    }
}

// ------------------------------------------------------------------ jumps

void FunctionBuilder::exec_jump(const syn::Stmt& s) {
    const bool is_break = s.kind == StmtKind::kBreak;
    const std::string word = is_break ? "'break'" : "'continue'";
    if (loops_.size() <= frame_->loop_base) {
        reject(ErrorClass::kInvalidOperationError, s.span, word + " outside loop");
    }
    LoopInfo& loop = *loops_.back();
    const std::vector<Note> notes{{"the loop", loop.span}};
    std::string where;
    switch (loop.kind) {
        case LoopInfo::Kind::kParallel: where = " not supported in parallel loops"; break;
        case LoopInfo::Kind::kUnroll: where = " not supported in unrolled loops"; break;
        case LoopInfo::Kind::kSplitAiv: where = " not supported inside a 'for ... in pl.split_aiv(...)' body"; break;
        case LoopInfo::Kind::kSpmd: where = " not supported inside a 'for ... in pl.spmd(...)' body"; break;
        default: break;
    }
    if (!where.empty()) {
        reject(ErrorClass::kInvalidOperationError, s.span, word + where,
               "use an 'if' around the statements to be skipped", notes);
    }
    if (regions_.size() > loop.regions) {
        reject(ErrorClass::kInvalidOperationError, s.span,
               word + " not supported here: the " + regions_.back()->name + " region at line " +
                   std::to_string(regions_.back()->span.line) + " lies between it and its loop",
               {}, notes);
    }
    if (loop.explicit_carry) {
        auto hand = make(ir::StmtKind::kYield, s.span);
        for (size_t i = 0; i < loop.carried.size(); ++i) {
            const BindingPtr b = find_binding(loop.carried[i]);
            if (!b || b->kind != Binding::Kind::kVar || !meets(*b->type, *loop.carry_types[i])) {
                reject(ErrorClass::kParserTypeError, s.span,
                       "Carried value '" + loop.carried[i] + "' has another type at this " + word);
            }
            hand->values.push_back(ir::var_ref(b->var, s.span));
        }
        loop.jumps.push_back(hand);
        emit(hand);
    }
    emit(make(is_break ? ir::StmtKind::kBreak : ir::StmtKind::kContinue, s.span));
    (is_break ? loop.breaks : loop.continues).push_back({flow(), block_, true});
    flow().live = false;
}

// ------------------------------------------------------------------ while

void FunctionBuilder::exec_while(const syn::Stmt& s) {
    if (!s.orelse.empty()) {
        reject(ErrorClass::kUnsupportedFeatureError, s.span, "Loop 'else' is not supported",
               "put the statements after the loop");
    }
    auto stmt = make(ir::StmtKind::kWhile, s.span);
    LoopInfo loop;
    loop.kind = LoopInfo::Kind::kWhile;
    loop.span = s.span;
    loop.frame = frame_;
    loop.regions = regions_.size();
    const auto known = constant_condition(*s.value);
    if (known && !*known) return;
    const bool endless = known.has_value();
    bool device = false;
    int devices = device_conditions_;
    run_loop(
        loop, stmt, s.body,
        [&] {
            device_conditions_ = devices;
            if (endless) {
                stmt->value = ir::bool_const(true, s.value->span);
                return;
            }
            const ExprPtr c = condition(*s.value, "while");
            device = kernel_region() && reads_device_data(c);
            if (device) ++device_conditions_;
            if (stmt->body.empty()) {
                stmt->value = c;
                return;
            }
            // The condition needs statements of its own: they run before every iteration.
            stmt->value = ir::bool_const(true, s.value->span);
            auto leave = make(ir::StmtKind::kIf, s.value->span);
            leave->value = ir::infer_scalar(ir::OpId::k_scalar_not, c, nullptr, s.value->span);
            leave->body.push_back(make(ir::StmtKind::kBreak, s.value->span));
            emit(leave);
        },
        false, endless, *block_);
    device_conditions_ = devices;
    if (endless && loop.breaks.empty() && flow().live) flow().live = false;
    if (endless && loop.breaks.empty()) {
        reject(ErrorClass::kParserSyntaxError, s.span, "'while True' without a reachable 'break' never ends",
               "add 'if ...: break', or give the loop a condition");
    }
    emit(stmt);
}

void FunctionBuilder::exec_while_carry(const syn::Stmt& s, const syn::Expr& call) {
    if (call.items.size() > 1) {
        reject(ErrorClass::kParserSyntaxError, call.span, "pl.while_() takes no positional arguments",
               "write pl.while_(init_values=(...)) and 'pl.cond(...)' as the first statement");
    }
    const syn::Expr* init = nullptr;
    for (const auto& k : call.keywords) {
        if (k.name == "init_values") {
            init = k.value.get();
        } else {
            reject(ErrorClass::kParserSyntaxError, k.value->span,
                   "Unknown keyword argument '" + k.name + "' in pl.while_()");
        }
    }
    if (!init) reject(ErrorClass::kParserSyntaxError, call.span, "pl.while_() requires init_values");
    const auto& target = *s.targets[0];
    std::vector<std::string> carried;
    if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
        for (const auto& t : target.items) {
            if (t->kind != ExprKind::kName) {
                reject(ErrorClass::kParserSyntaxError, t->span, "pl.while_() loop target must be a tuple of names");
            }
            carried.push_back(t->text);
        }
    } else {
        reject(ErrorClass::kParserSyntaxError, target.span, "pl.while_() loop target must be a tuple of names",
               "write 'for (x,) in pl.while_(init_values=(x0,)):'");
    }
    const Value v = eval(*init);
    if (!v.is_tuple()) {
        reject(ErrorClass::kParserSyntaxError, init->span, "init_values must be a tuple or list of values");
    }
    std::vector<ExprPtr> inits;
    std::vector<std::string> init_names(v.items.size());
    for (size_t i = 0; i < v.items.size(); ++i) {
        ExprPtr e = to_expr(v.items[i], init->span);
        if (e->untyped) {
            auto typed = std::make_shared<ir::Expr>(*e);
            typed->untyped = false;
            e = typed;
        }
        inits.push_back(e);
        if (i < init->items.size() && init->items[i]->kind == ExprKind::kName) init_names[i] = init->items[i]->text;
    }
    if (inits.size() != carried.size()) {
        reject(ErrorClass::kParserSyntaxError, target.span,
               "Mismatch: " + std::to_string(carried.size()) + " iter_args but " + std::to_string(inits.size()) +
                   " init_values");
    }
    const auto is_cond = [&](const syn::Stmt& st) {
        if (st.kind != StmtKind::kExpr || !st.value || st.value->kind != ExprKind::kCall) return false;
        const Callee c = resolve_callee(*st.value->items[0]);
        return c.kind == Callee::Kind::kConstruct && c.name == "pl.cond";
    };
    if (s.body.empty() || !is_cond(*s.body[0])) {
        reject(ErrorClass::kParserSyntaxError, s.body.empty() ? s.span : s.body[0]->span,
               "The first statement of a pl.while_() body must be pl.cond(condition)");
    }
    const auto& cond = *s.body[0]->value;
    if (cond.items.size() != 2 || !cond.keywords.empty()) {
        reject(ErrorClass::kParserSyntaxError, cond.span, "pl.cond takes exactly 1 argument");
    }
    auto stmt = make(ir::StmtKind::kWhile, s.span);
    stmt->explicit_carry = true;
    LoopInfo loop;
    loop.kind = LoopInfo::Kind::kWhile;
    loop.span = s.span;
    loop.frame = frame_;
    loop.regions = regions_.size();
    loop.explicit_carry = true;
    loop.carried = carried;
    for (size_t i = 0; i < inits.size(); ++i) {
        loop.carry_vars.push_back(variable(carried[i], inits[i]->type, target.span, ir::VarKind::kCarry));
        loop.carry_types.push_back(inits[i]->type);
    }
    static const std::vector<syn::StmtPtr> kNone;
    const int devices = device_conditions_;
    run_loop(
        loop, stmt, kNone,
        [&] {
            device_conditions_ = devices;
            bind_carries(loop, target.span);
            const ExprPtr c = condition(*cond.items[1], "while");
            if (kernel_region() && reads_device_data(c)) ++device_conditions_;
            if (stmt->body.empty()) {
                stmt->value = c;
            } else {
                stmt->value = ir::bool_const(true, cond.span);
                auto leave = make(ir::StmtKind::kIf, cond.span);
                leave->value = ir::infer_scalar(ir::OpId::k_scalar_not, c, nullptr, cond.span);
                leave->body.push_back(make(ir::StmtKind::kBreak, cond.span));
                emit(leave);
            }
            loop.entry = flow().names;
            exec_from(s.body, 1);
        },
        false, false, *block_);
    device_conditions_ = devices;
    if (!loop.yielded) {
        // Rebinding the carried names is accepted as in counted loops.
    }
    finish_carries(loop, stmt, inits, init_names);
    emit(stmt);
}

}  // namespace pypto::sema
