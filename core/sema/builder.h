// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ir/infer.h"
#include "core/ir/ir.h"
#include "core/sema/sema.h"
#include "core/sema/value.h"

/// Internal to core/sema: the two classes that read a program. `ProgramBuilder` owns the module and knows the
/// functions; `FunctionBuilder` reads one body. The member functions of the latter live in one file per
/// concern.
namespace pypto::sema {

/// Kinds of functions that no program may hold: `async def`, `*args`.
void reject_signature(const syn::FunctionDef& def);

class FunctionBuilder;

/// Counts how deep a reading is, exceptions included.
struct Depth {
  int& count;
  explicit Depth(int& n) : count(n) { ++count; }
  ~Depth() { --count; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
};

/// What a finished function did with its parameters; asked for by callers.
struct FunctionFacts {
  std::shared_ptr<FunctionSource> source;
  std::vector<bool> annotated;      ///< the parameter has an annotation
  std::vector<bool> read, written;  ///< through the parameter's storage
  std::vector<bool> symbol_param;   ///< integer scalar parameter that names a symbol (01 L-32)
  /// Collectives under a condition on parameters: which parameters, where (03 X-33).
  struct RankCondition {
    std::set<int> params;
    Span condition, collective;
    std::string operation;
  };
  std::vector<RankCondition> rank_conditions;
  bool allocates_windows = false;
  Span collective;  ///< first collective of the body (03 C-10)
  std::string collective_name;
  bool has_regions = false;
};

/// One argument of a call, before it meets a parameter.
struct Argument {
  std::string keyword;  ///< empty: positional
  const syn::Expr* syntax = nullptr;
  Value value;
  bool no_dep = false;
  Span span;
};

class ProgramBuilder {
 public:
  ProgramBuilder(BuildOptions options, std::string name);

  ir::ModulePtr module;
  BuildOptions options;
  std::vector<std::shared_ptr<FunctionSource>> methods;  ///< of the class, in order
  bool is_class = false;

  std::shared_ptr<FunctionSource> find_method(const std::string& name) const;
  std::vector<std::string> method_names() const;

  /// The function of a fully typed source (method, ir.Function, sub-worker); builds it on first use.
  ir::FunctionPtr declared_function(const std::shared_ptr<FunctionSource>& source, const Span& call);
  /// A JIT callee for these argument types; `constants` holds the baked scalars (null elsewhere).
  ir::FunctionPtr specialise(const std::shared_ptr<FunctionSource>& source, const std::vector<Value>& args,
                             const std::vector<std::string>& arg_names, const Span& call,
                             std::vector<ExprPtr>* constants);
  ir::FunctionPtr build_entry(const std::shared_ptr<FunctionSource>& source,
                              const std::vector<ArgSpec>& args);

  FunctionFacts& facts(const ir::Function* f) { return facts_[f]; }
  /// Adds a warning once per location and text.
  void warn(Diagnostic d);
  void warn(const Span& span, std::string id, std::string message, std::string hint = {});
  /// Registers an ir.Function made elsewhere under its own name (01 L-60).
  ir::FunctionPtr adopt(const std::shared_ptr<FunctionSource>& source, const Span& call);
  std::string unique_function_name(const std::string& base) const;

  /// Guards against functions that call each other in a circle.
  void enter(const std::shared_ptr<FunctionSource>& source, const Span& call);
  void leave() { building_.pop_back(); }
  /// After an error: nothing is being read any more.
  void abandon() { building_.clear(); }

  /// Dimensions of a JIT function's parameters that are dynamic, with the symbol's name (01 L-69).
  using DynamicDims = std::map<std::string, std::map<int, std::string>>;
  const DynamicDims& dynamic_dims(const std::shared_ptr<FunctionSource>& source);

  std::set<std::string> windows;  ///< names of the window buffers allocated so far (03 W-2)

  /// Undo point for a body that is read again.
  struct Mark {
    size_t warnings = 0;
    std::set<std::string> windows;
    size_t lines = 0;
  };
  Mark mark() const { return {module->warnings.size(), windows, printed_.size()}; }
  void rollback(const Mark& m);
  void print(Host* host, std::string line) { printed_.emplace_back(host, std::move(line)); }
  void flush_prints();

 private:
  struct Specialisation {
    std::string key;
    ir::FunctionPtr function;
    std::vector<ExprPtr> constants;
  };
  std::map<const FunctionSource*, std::vector<Specialisation>> specialisations_;
  std::map<const FunctionSource*, ir::FunctionPtr> declared_;
  std::map<std::string, const FunctionSource*> external_names_;
  std::map<const FunctionSource*, DynamicDims> dynamic_dims_;
  std::map<const ir::Function*, FunctionFacts> facts_;
  std::vector<std::shared_ptr<FunctionSource>> building_;
  std::set<std::string> warned_;
  std::vector<std::string> warned_order_;
  std::vector<std::pair<Host*, std::string>> printed_;

  friend class FunctionBuilder;
};

/// One name scope: the function itself, or an inline helper expanded into it.
struct Frame {
  std::shared_ptr<FunctionSource> source;
  Host* host = nullptr;
  Frame* parent = nullptr;  ///< the frame of the caller, for inline helpers
  bool is_inline = false;
  Flow flow;
  std::map<std::string, std::vector<VarPtr>> vars;  ///< every variable of a name, one per type
  std::map<std::string, std::string> renamed;       ///< name in this scope -> variable name
  std::map<std::string, ExprPtr> symbols;           ///< dynamic symbols of this scope
  Span call;
  bool auto_scope = true;

  // Results of an inline helper.
  bool returned = false;
  bool several_returns = false;
  bool value_return = false;
  bool tuple_return = false;
  std::vector<Value> result;
  size_t loop_base = 0;    ///< loops that belong to the caller
  size_t region_base = 0;  ///< regions that belong to the caller
  const std::vector<syn::StmtPtr>* rest = nullptr;
};

/// A region or scope the body is inside of.
struct RegionInfo {
  int id = 0;
  ir::ScopeKind kind = ir::ScopeKind::kIncore;
  Span span;
  std::string name;  ///< "pl.at", "pl.spmd", ...
  std::string hint;
  bool kernel = false;  ///< the body is a kernel
  bool blocks = false;  ///< several blocks run it
  bool has_split = false;
  bool has_split_aiv = false;
  ir::SplitMode mode = ir::SplitMode::kNone;
  ExprPtr core_num;
  int reads_block_index = 0;
  int kernel_calls = 0;
  int regions_inside = 0;
  bool early_resolve = false;
  bool waiter = false;  ///< holds a defer_wait (03 O-27)
  ir::Block* block = nullptr;
  std::set<VarPtr> defined;  ///< handles defined inside (clusters)
};

/// The manual scope that a task belongs to (01 L-166).
struct ManualTask {
  int region = 0;
  Span scope;
};

/// A loop the body is inside of.
struct LoopInfo {
  enum class Kind : uint8_t { kRange, kParallel, kPipeline, kUnroll, kWhile, kSpmd, kSplitAiv };
  Kind kind = Kind::kRange;
  Span span;
  Frame* frame = nullptr;
  size_t regions = 0;  ///< regions around the loop
  Env entry;           ///< names at the top of the body
  std::string variable;
  VarPtr var;
  ExprPtr start, stop, step;
  struct Edge {
    Flow flow;
    ir::Block* block = nullptr;  ///< where conversions for this edge go
    bool before_last = false;    ///< before the jump that ends the block
  };
  std::vector<Edge> breaks, continues;
  const syn::Stmt* last = nullptr;    ///< last statement of the body
  std::set<std::string> entry_reads;  ///< names read while they still had the value of the top
  std::map<std::string, Span> entry_read_spans;
  // explicit carry
  bool explicit_carry = false;
  std::vector<std::string> carried;
  std::vector<VarPtr> carry_vars;
  std::vector<TypePtr> carry_types;
  bool met_addresses = false;  ///< a yield read an address whose storage its carried name did not know of
  bool yielded = false;
  Span yield_span;
  std::vector<std::string> result_names;
  std::vector<VarPtr> results;
  std::vector<BindingPtr> result_bindings;
  std::set<std::string> assigned_tasks;  ///< names the body assigns
  int if_depth = 0;
  int stage = 0;  ///< pipeline
  const std::vector<syn::StmtPtr>* body = nullptr;
};

/// What the readings of a loop found so far. A loop inside another is read again whenever the outer one is;
/// it then starts where its last reading ended, or nested loops would cost twice as much per level.
struct LoopMemo {
  /// How a name enters the body other than it enters the loop.
  struct Change {
    std::vector<bool> shape, valid;  ///< extents that are not known in the body
    bool pad = false;
    bool blocks = false;
    ir::MemorySpace space = ir::MemorySpace::kUnset;  ///< the one it gets in the body
    std::string undefined;
    Span undefined_span;
    std::vector<int> regions;
    std::vector<std::shared_ptr<ir::Storage>> leaves;  ///< storages it may be besides its own
  };
  const std::vector<syn::StmtPtr>* body = nullptr;
  std::map<std::string, Change> changes;
  std::vector<size_t> lifted;                      ///< carries that live on chip
  std::vector<std::pair<size_t, size_t>> serials;  ///< storages that its readings made
  std::vector<std::unique_ptr<LoopMemo>> inner;    ///< loops of its body in the order they are read
  size_t next = 0;                                 ///< next of `inner` to be read
  /// Storages that the last reading of the body made, by name, and how many the present one has made.
  std::map<std::string, std::vector<std::shared_ptr<ir::Storage>>> made;
  std::map<std::string, size_t> made_now;
};

class FunctionBuilder {
 public:
  FunctionBuilder(ProgramBuilder& program, std::shared_ptr<FunctionSource> source);

  ir::FunctionPtr fn;
  FunctionFacts facts;

  /// Parameters as declared; annotations must be complete.
  void declare_params();
  /// A parameter of a JIT function: its type and, when baked, its constant.
  struct ParamSpec {
    TypePtr type;
    ExprPtr constant;  ///< untyped literal
    ir::ParamDirection direction = ir::ParamDirection::kIn;
    bool annotated = true;
  };
  void add_param(const syn::Param& param, const ParamSpec& spec);
  /// What the annotation of a JIT parameter says; `shape` entries are unknown where it says nothing.
  struct JitAnnotation {
    bool present = false;
    bool bare = false;  ///< pl.Tensor without shape
    TypePtr type;       ///< null when bare or absent
    ir::ParamDirection direction = ir::ParamDirection::kIn;
    bool window = false;
  };
  JitAnnotation jit_annotation(const syn::Param& param);
  /// The dynamic symbol `name` of this function (made on first use).
  ExprPtr symbol(const std::string& name, const Span& span);
  bool has_symbol(const std::string& name) const { return frame_->symbols.count(name) != 0; }
  void read_return_annotation(bool jit);
  void build_body();
  /// Kernel, device orchestration or host orchestrator, from type, level and (Opaque) the body.
  void decide_place();

  ProgramBuilder& program() { return program_; }
  Host* host() { return frame_->host; }

  // ---- annotations.cpp
  enum class AnnotationUse : uint8_t { kParam, kJitParam, kReturn, kAssign, kInlineParam };
  struct Annotation {
    TypePtr type;  ///< null: names no type (bare pl.Tensor, handle types)
    bool bare_tensor = false;
    bool ignored = false;
    bool is_tuple = false;
    bool is_none = false;
    std::vector<Annotation> elements;
    bool has_direction = false;
    ir::ParamDirection direction = ir::ParamDirection::kIn;
    bool window = false;
  };
  Annotation annotation(const syn::Expr& e, AnnotationUse use);
  ir::Dim read_dim(const syn::Expr& e, AnnotationUse use);
  ir::Dim value_dim(const Value& v, const syn::Expr& e, AnnotationUse use);
  ir::Shape read_shape(const syn::Expr& e, AnnotationUse use);
  DType read_dtype(const syn::Expr& e);
  std::shared_ptr<const ir::TensorView> read_tensor_view(const syn::Expr& call, AnnotationUse use);
  std::shared_ptr<const ir::TileView> read_tile_view(const syn::Expr& call, AnnotationUse use);
  std::shared_ptr<const ir::MemRef> read_memref(const syn::Expr& e);
  Host* frame_host() const { return frame_->host; }

  // ---- loops and constants for other files
  std::optional<int64_t> lower_bound(const ExprPtr& e) const;

 private:
  friend class ProgramBuilder;

  // ---- names.cpp
  Value read_name(const std::string& name, const Span& span);
  Value read_binding(const std::string& name, const BindingPtr& b, const Span& span);
  void check_crossing(const std::string& name, const Binding& b, const Span& span);
  BindingPtr find_binding(const std::string& name) const;
  HostValue host_lookup(const std::string& name);
  Value from_host(const HostValue& h, const Span& span);
  ExprPtr symbolic(const ExprPtr& e, const Span& span);
  std::vector<std::string> visible_names() const;
  void bind(const std::string& name, BindingPtr b);
  void bind_value(const std::string& name, Value v, const Span& span);
  VarPtr variable(const std::string& name, const TypePtr& type, const Span& span,
                  ir::VarKind kind = ir::VarKind::kLocal);
  VarPtr temp(const char* base, const TypePtr& type, const Span& span);
  std::string unique_name(const std::string& base);
  std::string variable_name(const std::string& name);
  void collect_names(const std::vector<syn::StmtPtr>& body);

  // ---- assign.cpp
  void assign(const std::string& name, Value value, const Span& span, const TypePtr& annotated = nullptr,
              bool plain_copy = false);
  void exec_assign(const syn::Stmt& s);
  void exec_ann_assign(const syn::Stmt& s);
  void exec_aug_assign(const syn::Stmt& s);
  void assign_targets(const std::vector<std::string>& names, Value value, const Span& span);
  Value handed_back(Value v, const Span& span);
  std::vector<std::string> target_names(const syn::Expr& target);
  TypePtr check_annotation(const std::string& name, const Annotation& a, Value& value, const Span& span);
  void note_rebinding(const std::string& name, const Value& value, const Span& span);
  Value spill(const Value& v, const char* base, const Span& span);

  // ---- expressions.cpp
  Value eval(const syn::Expr& e);
  ExprPtr eval_expr(const syn::Expr& e);
  ExprPtr to_expr(const Value& v, const Span& span);
  ExprPtr to_argument(const Value& v, const Span& span);
  bool is_static(const syn::Expr& e, std::set<std::string>* bound = nullptr);
  Value fold(const syn::Expr& e);
  std::optional<HostValue> fold_small(const syn::Expr& e);
  std::optional<HostValue> host_value(const Value& v);
  void collect_locals(const syn::Expr& e, std::vector<std::pair<std::string, HostValue>>& out,
                      std::set<std::string>& seen);
  Value eval_name(const syn::Expr& e);
  Value eval_attribute(const syn::Expr& e);
  Value eval_unary(const syn::Expr& e);
  Value eval_binary(const syn::Expr& e);
  Value binary(const std::string& text, const Value& lhs, const Value& rhs, const syn::Expr& e);
  Value eval_compare(const syn::Expr& e);
  Value eval_bool(const syn::Expr& e);
  Value scalar_operator(ir::OpId op, const std::string& text, ExprPtr lhs, ExprPtr rhs, const syn::Expr& e);
  Value array_operator(const std::string& text, const Value& lhs, const Value& rhs, const syn::Expr& e);
  ExprPtr condition(const syn::Expr& e, const char* what);
  std::optional<bool> constant_condition(const syn::Expr& e);
  bool has_expansion(const syn::Expr& e);
  std::vector<Value> eval_operands(const std::vector<const syn::Expr*>& list);
  int64_t constant_int(const syn::Expr& e, const std::string& what,
                       ErrorClass cls = ErrorClass::kParserSyntaxError);
  std::optional<int64_t> try_constant_int(const Value& v);
  std::optional<Value> fold_builtin(const syn::Expr& e);
  Value compile_time(const syn::Expr& e);

  // ---- calls.cpp
  struct Callee {
    enum class Kind : uint8_t { kUnknown, kConstruct, kMethod, kFunction, kPython };
    Kind kind = Kind::kUnknown;
    std::string name;  ///< canonical dotted name, or the method's
    std::shared_ptr<FunctionSource> function;
    HostValue host;
  };
  Callee resolve_callee(const syn::Expr& callee);
  HostValue resolve_host(const syn::Expr& e);
  Value eval_call(const syn::Expr& e, bool statement = false);
  Value eval_construct(const std::string& name, const syn::Expr& e, bool statement);
  Value call_operation(ir::OpForm form, const std::string& name, const std::string& spelling,
                       const syn::Expr& e);
  Value infer(const ir::OpRow& row, ir::OpForm form, std::vector<ExprPtr> args, const Span& span,
              const std::string& spelling);
  [[noreturn]] void unknown_operation(const syn::Expr& callee, const std::string& dotted);
  std::vector<Argument> arguments(const syn::Expr& call, size_t first = 0);
  bool is_self(const syn::Expr& e);
  ir::OpPlace place() const;
  ir::InferContext context(const Span& span);

  // ---- invoke.cpp
  Value invoke(const std::shared_ptr<FunctionSource>& source, const syn::Expr& call,
               ir::CallInfo* submit = nullptr, size_t first_arg = 0);
  Value call_function(const std::shared_ptr<FunctionSource>& source, std::vector<Argument> args,
                      const syn::Expr& call, ir::CallInfo info);
  std::vector<Value> match_params(const std::shared_ptr<FunctionSource>& source, std::vector<Argument>& args,
                                  const Span& span, std::vector<bool>* no_dep,
                                  std::vector<const syn::Expr*>* syntax, bool allow_missing);
  void check_call_rules(const std::shared_ptr<FunctionSource>& source, const Span& span);
  ExprPtr convert_argument(const ir::Function& callee, size_t i, const Value& value, const Span& span,
                           bool dispatch);
  std::vector<TypePtr> result_types(const ir::Function& callee, const std::vector<ExprPtr>& args);
  const char* callee_tier(const FunctionSource& f) const;
  std::vector<TypePtr> omitted_type(const ir::Function& callee, size_t i, const std::vector<ExprPtr>& given);
  bool mentions(const ExprPtr& e, const ExprPtr& var) const;
  void warn_rank_condition(const std::string& operation, const Span& collective, const Span& condition);

  // ---- inline.cpp
  Value expand(const std::shared_ptr<FunctionSource>& source, std::vector<Argument> args,
               const syn::Expr& call);
  void bind_inline_param(Frame& frame, const syn::Param& param, const Value& value, const syn::Expr* syntax,
                         const Span& span);
  void bind_annotation_symbols(const syn::Expr& annotation_syntax, const Value& value, const Span& span);
  static bool contains_return(const std::vector<syn::StmtPtr>& body);
  void exec_inline_return(const syn::Stmt& s);

  // ---- tasks.cpp
  Value eval_submit(const std::string& construct, const syn::Expr& e);
  Value range_items(const syn::Expr& e);
  static bool submit_keyword(const std::string& name);
  void read_deps(const syn::Expr& e, std::vector<ExprPtr>& out);
  ExprPtr read_predicate(const syn::Expr& e, const std::vector<ExprPtr>& deps);
  Value task_dummy(const syn::Expr& e);
  Value dump_tag(const syn::Expr& e);
  bool bool_literal(const syn::Keyword& k);
  void read_call_attrs(const syn::Expr& e, size_t arguments);
  void assign_submit(const syn::Stmt& s, const syn::Expr& call);

  // ---- subscripts.cpp
  struct Subscript {
    std::vector<ExprPtr> offset, extent, valid;
    std::vector<int> dropped;
    bool all_scalar = true;
    bool narrowed = false;
    int slices = 0;
  };
  Value eval_subscript(const syn::Expr& e);
  Subscript read_subscript(const ir::Type& t, const syn::Expr& index, const Span& span, bool write);
  ExprPtr index_scalar(const syn::Expr& e, const ir::Type& t, int dim, bool upper);
  void exec_subscript_write(const syn::Expr& target, Value value, const Span& span, const syn::Expr* source);
  ExprPtr extent_of(const ExprPtr& base, int dim, const Span& span);

  // ---- branches.cpp
  void exec_block(const std::vector<syn::StmtPtr>& body);
  void exec_from(const std::vector<syn::StmtPtr>& body, size_t first);
  void exec(const syn::Stmt& s);
  void exec_if(const syn::Stmt& s, const std::vector<syn::StmtPtr>* all = nullptr, size_t next = 0);
  void exec_expression(const syn::Stmt& s);
  void exec_return(const syn::Stmt& s);
  bool yields(const std::vector<syn::StmtPtr>& body, const syn::Stmt** found) const;
  struct Site {
    ir::Block* block_a = nullptr;  ///< conversions of the first flow
    ir::Block* block_b = nullptr;
    bool before_last_a = false, before_last_b = false;
    const Env* before = nullptr;
    std::string missing_a, missing_b;
    Span span;
    bool loop = false;
    size_t serial = 0;  ///< loops: storages made since are inside
  };
  Flow merge(const Flow& a, const Flow& b, const Site& site);
  BindingPtr join(const std::string& name, const BindingPtr& a, const BindingPtr& b, const Site& site);
  TypePtr join_types(const TypePtr& a, const TypePtr& b, const Site& site);
  void convert_into(const VarPtr& var, const Binding& from, ir::Block* block, bool before_last,
                    const Span& span);

  // ---- loops.cpp
  void exec_for(const syn::Stmt& s);
  void exec_range(const syn::Stmt& s, const std::string& iterator, const syn::Expr& call);
  void exec_unroll(const syn::Stmt& s, const syn::Expr& call);
  void exec_while(const syn::Stmt& s);
  void exec_while_carry(const syn::Stmt& s, const syn::Expr& call);
  void exec_jump(const syn::Stmt& s);
  /// Reads the body (again, until what holds at its top holds at its end too); `body` emits into the current
  /// block.
  void run_loop(LoopInfo& loop, const ir::StmtPtr& stmt, const std::vector<syn::StmtPtr>& body,
                const std::function<void()>& read, bool at_least_once, bool endless, ir::Block& before);
  void rebind_carries(const LoopInfo& loop, const LoopInfo::Edge& edge);
  static bool made_by(const LoopMemo& memo, size_t serial, size_t serial0);
  void succeed(const std::shared_ptr<ir::Storage>& made);
  std::shared_ptr<ir::Storage> present(std::shared_ptr<ir::Storage> old) const;
  LoopMemo* recall_loop(const std::vector<syn::StmtPtr>& body, LoopMemo& own);
  void apply_changes(const LoopMemo& memo, const LoopInfo& loop, Env& entry);
  void note_changes(LoopMemo& memo, const LoopInfo& loop, const Env& before, const Env& entry,
                    size_t serial0);
  void lift_carries(LoopInfo& loop, const std::vector<size_t>& which);
  std::vector<size_t> carries_on_chip(const LoopInfo& loop, const std::vector<LoopInfo::Edge>& back) const;
  void finish_carries(LoopInfo& loop, const ir::StmtPtr& stmt, std::vector<ExprPtr> inits,
                      const std::vector<std::string>& init_names, bool once);
  void loop_yield(LoopInfo& loop, const std::vector<std::string>& names, const syn::Expr& call,
                  const Span& span);
  Value eval_yield(const syn::Expr& call, const std::vector<std::string>& names, const Span& span);
  void check_parallel(LoopInfo& loop, const Flow& end);
  void bind_carries(LoopInfo& loop, const Span& span);
  void collect_parallel_tasks(const LoopInfo& loop, const Env& before);
  bool changed(const Binding& a, const Binding& b, size_t serial, const LoopMemo& memo);
  static void assigned_names(const std::vector<syn::StmtPtr>& body, std::set<std::string>& out);
  bool at_least_once(const ExprPtr& start, const ExprPtr& stop, const ExprPtr& step) const;

  // ---- scopes.cpp
  void exec_with(const syn::Stmt& s);
  void exec_at(const syn::Stmt& s, const syn::Expr& call, const syn::Expr* as);
  void exec_cluster(const syn::Stmt& s, const syn::Expr& call);
  void exec_scope(const syn::Stmt& s, const syn::Expr& call, bool manual_form);
  void exec_spmd(const syn::Stmt& s, const syn::Expr& call, const syn::Expr* as, bool for_form);
  void exec_split_aiv(const syn::Stmt& s, const syn::Expr& call);
  ExprPtr core_count(const syn::Expr& e, const std::string& owner);
  void scan_spmd_expr(const syn::Expr& e, int* index_reads, int* kernel_calls);
  void scan_spmd_body(const std::vector<syn::StmtPtr>& body, int* index_reads, int* kernel_calls,
                      int* regions);
  void read_optimizations(const syn::Expr& e, ir::ScopeInfo& info, const std::string& owner);
  std::string name_hint(const syn::Expr& e, const std::string& owner);
  std::vector<VarPtr> tensor_names(const syn::Expr& e, const std::string& keyword);
  void run_region(const ir::StmtPtr& stmt, RegionInfo info, const std::vector<syn::StmtPtr>& body,
                  const std::function<void()>& prologue = {});
  void bind_task(const std::shared_ptr<ir::ScopeInfo>& info, const syn::Expr& as);
  void note_manual_task(const VarPtr& handle);
  /// The ended manual scope that the task of `handle` belongs to, or null.
  const ManualTask* ended_scope(const VarPtr& handle) const;
  const RegionInfo* kernel_region() const;
  const RegionInfo* enclosing(ir::ScopeKind kind) const;
  void require_control_plane(const Span& span, const std::string& what);

  // ---- directives.cpp
  void static_print(const syn::Expr& e);
  void static_assert_(const syn::Expr& e);
  Value const_(const syn::Expr& e);
  void read_func_attrs();
  void func_attr(const syn::Expr& e);
  bool bind_dynamic(const syn::Expr& e);

  // ---- functions.cpp
  void scan_expr(const syn::Expr& e, bool* kernel_op, bool* calls);
  void scan_body(const std::vector<syn::StmtPtr>& body, bool* kernel_op, bool* calls, bool* region,
                 bool* split_aiv);
  void results_from_annotation();

  // ---- effects.cpp
  std::shared_ptr<ir::Storage> new_storage(const std::string& name);
  size_t serial(const ir::Storage* s) const;
  std::vector<std::shared_ptr<ir::Storage>> leaves(const std::shared_ptr<ir::Storage>& s) const;
  std::shared_ptr<ir::Storage> join_storage(const std::shared_ptr<ir::Storage>& a,
                                            const std::shared_ptr<ir::Storage>& b);
  void add_leaves(const std::shared_ptr<ir::Storage>& into, const std::shared_ptr<ir::Storage>& from);
  bool outside(const ir::Storage& s) const;
  void mark_read(const TypePtr& t, const Span& span);
  void mark_written(const TypePtr& t, const Span& span, const std::string& how);
  void mark_leaves_region(const TypePtr& t);
  ExprPtr with_effects(const ExprPtr& e, const Span& span);
  void note_call(const ExprPtr& call, const ir::Function& callee);
  bool reads_device_data(const ExprPtr& e) const;
  bool rank_dependent(const ExprPtr& e, std::set<int>* params) const;
  bool derives_from_param(const TypePtr& t, int param) const;
  void finish();
  void settle_places();
  void report_dropped_outputs();
  void effective_directions();

  // ---- host_rules.cpp
  bool in_host() const;
  Value alloc_window(const syn::Expr& e, const std::string& name);
  Value host_window(const syn::Expr& e);
  ExprPtr read_device(const syn::Expr& e, bool has_windows, const std::string& callee);
  void check_dispatch(const ir::Function& callee, const std::vector<ExprPtr>& args, const ExprPtr& device,
                      const Span& span);
  void check_distributed(const ir::OpRow& row, const std::string& spelling, const syn::Expr& call);
  void check_intermediate(const std::string& spelling, const Span& span);
  void consume_window(const ExprPtr& e);
  void check_defer_wait(const std::vector<ExprPtr>& args, const Span& span);
  bool check_waiter(const ir::Block& body, bool registered = false);
  void check_waiter_task(const ir::Expr& call, const Span& span);
  const LoopInfo* loop_of(const ExprPtr& e) const;
  void note_host_scalar(const ir::Var& var, const ExprPtr& value);
  bool is_world_size(const ExprPtr& e) const;
  void check_windows();
  void note_collective(const std::string& spelling, const Span& span);

  // ---- bookkeeping
  ir::StmtPtr make(ir::StmtKind kind, const Span& span);
  void emit(ir::StmtPtr s) { block_->push_back(std::move(s)); }
  void emit_assign(const VarPtr& var, ExprPtr value, const Span& span, const TypePtr& annotated = nullptr);
  void emit_eval(ExprPtr value, const Span& span);
  Flow& flow() { return frame_->flow; }
  const Flow& flow() const { return frame_->flow; }

  struct WindowBuffer {
    std::string name;
    Span span;
    ExprPtr bytes;
    bool viewed = false, consumed = false;
    std::shared_ptr<ir::Storage> storage;
  };
  struct Undo {
    ProgramBuilder::Mark mark;
    size_t vars = 0;
    std::map<std::string, std::vector<VarPtr>> table;
    std::vector<ir::TypePtr> var_types;
    std::map<std::string, std::string> renamed;
    std::set<std::string> used;
    std::map<std::string, int> next_suffix;
    int next_region = 0;
    std::map<const ir::Storage*, WindowBuffer> buffers;
  };
  Undo undo_point() const;
  void undo(const Undo& u);

  ProgramBuilder& program_;
  std::shared_ptr<FunctionSource> source_;
  std::unique_ptr<Frame> root_;
  Frame* frame_ = nullptr;
  ir::Block* block_ = nullptr;
  ir::OpPlace base_place_ = ir::kPlaceOrch;
  bool strict_ssa_ = false;
  std::vector<LoopInfo*> loops_;
  std::vector<RegionInfo*> regions_;      ///< innermost last
  std::map<int, RegionInfo> region_log_;  ///< every region by id, for messages
  int next_region_ = 1;
  std::set<std::string> used_names_;
  std::map<std::string, int> next_suffix_;  ///< last one given to a name that was taken
  int depth_ = 0;                           ///< of inline expansion
  std::vector<const FunctionSource*> expanding_;
  std::map<std::string, BindingPtr> yield_if_;  ///< targets of pl.yield_ in an if arm

  struct IfYield {
    std::vector<std::string> names;
    std::vector<TypePtr> types;
    bool seen = false;
    size_t loops = 0;     ///< loops around the branch
    bool folded = false;  ///< the condition was known: the yield of the arm taken is a plain assignment
    Span span;
  };
  std::vector<IfYield*> if_yields_;

  // effects
  struct StorageFacts {
    size_t serial = 0;
    std::vector<std::shared_ptr<ir::Storage>> members;
  };
  std::unordered_map<const ir::Storage*, StorageFacts> storage_facts_;
  size_t next_serial_ = 1;
  std::vector<VarPtr> dropped_;
  std::vector<std::shared_ptr<ir::Storage>> kept_;  ///< keeps storages alive: facts are found by address
  std::map<std::vector<const ir::Storage*>, std::shared_ptr<ir::Storage>> joined_;
  std::vector<Span> param_written_, param_read_first_, param_rebound_;
  std::vector<bool> param_mentioned_;         ///< other than by returning it
  std::vector<bool> param_written_directly_;  ///< by this body or an output of a callee
  bool promoted_by_callee_ = false;
  std::set<const ir::Var*> device_data_;  ///< scalars computed from device data inside regions
  std::set<const ir::Var*> rank_vars_;
  std::map<const ir::Var*, std::set<int>> rank_params_;
  int device_conditions_ = 0;  ///< enclosing conditions on device data
  struct RankCondition {
    Span span;
    std::string text;
    bool rank = false;
    std::set<int> params;
  };
  std::vector<RankCondition> rank_conditions_;
  std::map<const ir::Var*, int64_t> task_writers_;
  std::map<const ir::Storage*, VarPtr>
      writer_task_;  ///< handle of the task that last wrote a storage (01 L-136)
  std::map<const ir::Var*, ManualTask> manual_tasks_;  ///< handles of tasks of manual scopes (01 L-166)

  std::map<std::string, std::string> memref_variables_, memref_names_;  ///< 01 L-39

  // host
  std::map<const ir::Storage*, WindowBuffer> buffers_;

  // returns
  bool has_return_ = false, value_return_ = false;
  Span first_return_;
  std::vector<Annotation> return_annotation_;
  bool return_none_ = false;
  bool jit_ = false;
  int expr_depth_ = 0;
  std::map<const ir::Var*, const ir::Var*> loop_alias_;  ///< temporaries that hold a loop variable
  std::set<const ir::Var*> world_vars_;                  ///< variables that hold pld.world_size()
  bool reading_body_ = false;
  bool waits_ = false;   ///< a lowered waiter that has registered a condition (03 O-27)
  int annotations_ = 0;  ///< annotations being read
  size_t first_statement_ = 0;
  std::shared_ptr<ir::ScopeInfo> spmd_region_;  ///< the launch whose body is being read
  std::set<std::string> func_attr_keys_;
  std::set<const FunctionSource*> scanned_;
  LoopMemo* memo_ = nullptr;  ///< of the innermost loop being read
  std::unordered_map<const ir::Storage*, std::shared_ptr<ir::Storage>> successors_;  ///< in a later reading
  TypePtr pop_type_;  ///< annotation of the variable that the pop being read is assigned to (02 O-2105)
};

/// Dotted namespace and name -> form; false when the namespace is none of operations.
bool operation_form(const std::string& dotted, ir::OpForm* form, std::string* name);
/// "tensor", "tile", ...; empty for the flat and the distributed namespaces.
const char* form_module(ir::OpForm form);
/// "InCore", "Orchestration", ...
const char* type_word(ir::FunctionType t);

}  // namespace pypto::sema
