// SPDX-License-Identifier: Apache-2.0

#include "core/sema/builder.h"

/// Entries of `optimizations=[...]` (01 L-110, L-114).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

/// `optimizations=[pl.split(MODE), pl.cross_core_slot(slot_num=N)]` (01 L-114).
void FunctionBuilder::read_optimizations(const syn::Expr& e, ir::ScopeInfo& info, const std::string& owner) {
  if (e.kind == ExprKind::kNone) return;
  if (e.kind != ExprKind::kList) {
    reject(ErrorClass::kParserSyntaxError, e.span, owner + "(optimizations=...) must be a list literal");
  }
  bool split = false;
  bool slot = false;
  bool slot_from_split = false;
  const auto count = [&](const syn::Expr& n) {
    const auto v = n.kind == ExprKind::kInt || is_static(n) || n.kind == ExprKind::kUnary
                       ? try_constant_int(eval(n))
                       : std::nullopt;
    if (!v)
      reject(ErrorClass::kParserSyntaxError, n.span,
             "slot_num must be an integer literal, got " + source_text(n));
    if (*v <= 0)
      reject(ErrorClass::kParserSyntaxError, n.span, "slot_num must be positive, got " + std::to_string(*v));
    return static_cast<int>(*v);
  };
  for (const auto& entry : e.items) {
    HostValue h;
    if (entry->kind == ExprKind::kCall) h = resolve_host(*entry->items[0]);
    const std::string name = h.kind == HostKind::kConstruct ? last_component(h.text) : "";
    if (name == "split") {
      if (split) {
        reject(ErrorClass::kParserSyntaxError, entry->span,
               "Duplicate 'pl.split(...)' in " + owner + "(optimizations=[...])");
      }
      split = true;
      const syn::Expr* mode = entry->items.size() == 2 ? entry->items[1].get() : nullptr;
      const syn::Expr* slots = nullptr;
      for (const auto& k : entry->keywords) {
        if (k.name == "slot_num")
          slots = k.value.get();
        else if (k.name == "mode" && entry->items.size() == 1)
          mode = k.value.get();
        else {
          reject(ErrorClass::kParserSyntaxError, k.value->span,
                 "Unknown keyword argument '" + k.name + "' in pl.split()");
        }
      }
      if (!mode || entry->items.size() > 2) {
        reject(ErrorClass::kParserSyntaxError, entry->span, "pl.split takes exactly 1 positional argument");
      }
      const Value m = eval(*mode);
      if (!m.is_host() || m.host.kind != HostKind::kEnum || m.host.text.rfind("SplitMode.", 0) != 0) {
        reject(ErrorClass::kParserSyntaxError, mode->span,
               "pl.split mode must be a pl.SplitMode member, got " + source_text(*mode));
      }
      info.split = static_cast<ir::SplitMode>(m.host.int_value);
      info.has_split = info.split != ir::SplitMode::kNone;
      if (slots && slots->kind != ExprKind::kNone) {
        if (slot) {
          reject(ErrorClass::kParserSyntaxError, slots->span,
                 owner + "(optimizations=[...]) sets the cross-core slot count twice");
        }
        slot_from_split = true;
        info.slot_num = count(*slots);
        Diagnostic d;
        d.severity = Severity::kWarning;
        d.id = "W-DEPRECATED";
        d.message = "pl.split(slot_num=...) is deprecated";
        d.hint = "use pl.cross_core_slot(slot_num=N)";
        d.span = slots->span;
        program_.warn(std::move(d));
      }
      continue;
    }
    if (name == "cross_core_slot") {
      if (slot) {
        reject(ErrorClass::kParserSyntaxError, entry->span,
               "Duplicate 'pl.cross_core_slot(...)' in " + owner + "(optimizations=[...])");
      }
      slot = true;
      if (entry->items.size() > 1) {
        reject(ErrorClass::kParserSyntaxError, entry->span,
               "pl.cross_core_slot takes no positional arguments");
      }
      const syn::Expr* n = nullptr;
      for (const auto& k : entry->keywords) {
        if (k.name == "slot_num")
          n = k.value.get();
        else {
          reject(ErrorClass::kParserSyntaxError, k.value->span,
                 "Unknown keyword argument '" + k.name + "' in pl.cross_core_slot()");
        }
      }
      if (!n) {
        reject(ErrorClass::kParserSyntaxError, entry->span,
               "pl.cross_core_slot requires the slot_num= keyword argument");
      }
      if (slot_from_split) {
        reject(ErrorClass::kParserSyntaxError, entry->span,
               owner + "(optimizations=[...]) sets the cross-core slot count twice");
      }
      info.slot_num = count(*n);
      continue;
    }
    reject(ErrorClass::kParserSyntaxError, entry->span,
           "Unsupported entry in " + owner + "(optimizations=[...]): " + source_text(*entry),
           "entries are pl.split(mode) and pl.cross_core_slot(slot_num=N)");
  }
}

}  // namespace pypto::sema
