// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/infer.h"

/// Builders of operation calls for the tests of type inference: `call("add", {x, y})` types pl.add(x, y).
namespace pypto::ir::test {

using Named = std::vector<std::pair<std::string, ExprPtr>>;

inline ExprPtr num(int64_t v) { return int_const(v, DType::kIndex, {}, true); }
inline ExprPtr real(double v) { return float_const(v, DType::kFp32, {}, true); }
inline ExprPtr yes(bool v = true) { return bool_const(v); }
inline ExprPtr text(std::string s) { return string_const(std::move(s)); }
inline ExprPtr list(std::vector<ExprPtr> items) { return tuple_expr(std::move(items)); }
inline ExprPtr ints(std::initializer_list<int64_t> values) {
  std::vector<ExprPtr> items;
  for (const int64_t v : values) items.push_back(num(v));
  return tuple_expr(std::move(items));
}
inline ExprPtr dtype(DType d) {
  auto e = std::make_shared<Expr>();
  e->kind = ExprKind::kDType;
  e->int_value = static_cast<int64_t>(d);
  e->type = simple_type(TypeKind::kNone);
  return e;
}
inline ExprPtr member(std::string name, int64_t value) {
  auto e = std::make_shared<Expr>();
  e->kind = ExprKind::kInt;
  e->int_value = value;
  e->text = std::move(name);
  e->type = scalar_type(DType::kInt32);
  return e;
}
inline ExprPtr memory(MemorySpace s) { return member("MemorySpace.X", static_cast<int64_t>(s)); }
inline ExprPtr pad(PadValue p) { return member("PadValue.x", static_cast<int64_t>(p)); }
inline ExprPtr atomic_add() { return member("AtomicType.Add", 1); }

inline ExprPtr var(TypePtr type, std::string name = "x", VarKind kind = VarKind::kLocal) {
  auto v = std::make_shared<Var>();
  v->name = std::move(name);
  v->type = std::move(type);
  v->kind = kind;
  return var_ref(v);
}
inline ExprPtr scalar(DType d, std::string name = "s") { return var(scalar_type(d), std::move(name)); }
inline ExprPtr index(std::string name = "i") { return scalar(DType::kIndex, std::move(name)); }
inline Shape dims(std::initializer_list<int64_t> values) { return Shape(values.begin(), values.end()); }

inline TypePtr stored(Type t) {
  if (!t.storage) t.storage = std::make_shared<Storage>();
  return std::make_shared<Type>(std::move(t));
}
/// Tile in Vec unless said otherwise; `valid` narrows it.
inline ExprPtr tile(Shape shape, DType d, Shape valid = {}, MemorySpace space = MemorySpace::kVec) {
  Type t = *tile_type(std::move(shape), d, space);
  t.valid = std::move(valid);
  t.storage = std::make_shared<Storage>();
  t.storage->extents = t.shape;
  return var(std::make_shared<Type>(std::move(t)), "t");
}
inline ExprPtr tensor(Shape shape, DType d, TensorPlace place = TensorPlace::kGlobal, Shape valid = {}) {
  Type t = *tensor_type(std::move(shape), d, place);
  t.valid = std::move(valid);
  return var(stored(std::move(t)), "x", VarKind::kParam);
}
inline ExprPtr window(Shape shape, DType d) { return tensor(std::move(shape), d, TensorPlace::kWindow); }
inline ExprPtr on_chip(Shape shape, DType d) { return tensor(std::move(shape), d, TensorPlace::kOnChip); }

struct Infer : ::testing::Test {
  InferContext context;
  std::vector<std::string> warnings;

  Infer() {
    context.warn = [this](Diagnostic d) { warnings.push_back(d.message); };
  }
  void a5() { context.arch = Arch::kA5; }
  void orchestration() {
    context.place = kPlaceOrch;
    context.function_type = FunctionType::kOrchestration;
  }
  void host() { context.place = kPlaceHost; }

  ExprPtr call_in(OpForm form, const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    const OpRow* row = find_op(form, name);
    if (!row) fail(ErrorClass::kInternalError, "no row " + name);
    OpCallSite site;
    site.row = row;
    site.form = form;
    site.args = std::move(args);
    site.args.resize(op_params(*row, kFormFlat).size());
    for (const auto& [key, value] : named) {
      const int i = op_param_index(*row, key);
      if (i < 0) fail(ErrorClass::kInternalError, "no parameter " + key);
      site.args[static_cast<size_t>(i)] = value;
    }
    return infer_op(context, site);
  }
  ExprPtr call(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormFlat, name, std::move(args), named);
  }
  ExprPtr call_tile(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormTile, name, std::move(args), named);
  }
  ExprPtr call_tensor(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormTensor, name, std::move(args), named);
  }
  ExprPtr call_system(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormSystem, name, std::move(args), named);
  }
};

/// "class: message" of the failure, or the result's type.
template <class F>
std::string outcome(F f) {
  try {
    const ExprPtr e = f();
    return "ok " + (e->type ? type_text(*e->type) : std::string("?"));
  } catch (const Failure& failure) {
    const char* cls = "other";
    switch (failure.diagnostic().cls) {
      case ErrorClass::kTypeError:
        cls = "TypeError";
        break;
      case ErrorClass::kValueError:
        cls = "ValueError";
        break;
      case ErrorClass::kParserTypeError:
        cls = "ParserTypeError";
        break;
      case ErrorClass::kZeroDivisionError:
        cls = "ZeroDivisionError";
        break;
      case ErrorClass::kError:
        cls = "Error";
        break;
      case ErrorClass::kInternalError:
        cls = "InternalError";
        break;
      default:
        break;
    }
    return std::string(cls) + ": " + failure.diagnostic().message + " | " + failure.diagnostic().hint;
  }
}

inline std::string text_of(const ExprPtr& e) { return type_text(*e->type); }
inline std::string valid_text(const ExprPtr& e) {
  return e->type->valid.empty() ? "full" : shape_text(e->type->valid);
}

/// The call fails, its text contains every fragment (the class is the first one).
#define EXPECT_REJECTED(expression, ...)                                                                    \
  do {                                                                                                      \
    const std::string got_text = ::pypto::ir::test::outcome([&] { return expression; });                    \
    for (const std::string& fragment : std::vector<std::string>{__VA_ARGS__}) {                             \
      EXPECT_NE(got_text.find(fragment), std::string::npos) << "missing: " << fragment << "\n" << got_text; \
    }                                                                                                       \
  } while (0)

}  // namespace pypto::ir::test
