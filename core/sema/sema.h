// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir/ir.h"
#include "core/sema/host.h"

namespace pypto::sema {

/// Where "infer"-independent options of a build come from.
struct BuildOptions {
  ir::Arch arch = ir::Arch::kA2A3;
};

/// A @pl.program class.
struct ProgramSource {
  std::string name;
  std::vector<std::shared_ptr<FunctionSource>> functions;  ///< in order of definition
  bool strict_ssa = false;
  Span span;
};

/// One argument of a JIT specialisation, by parameter of the entry.
struct ArgSpec {
  enum class Kind : uint8_t {
    kSignature,  ///< no sample: take the annotation (signature mode)
    kTensor,     ///< dtype and shape of the array
    kInt,        ///< baked scalar
    kFloat,
    kBool,
    kRuntime,  ///< pl.RUNTIME: a run-time scalar
    kDefault,  ///< omitted scalar with a default in the signature: value in the fields below, baked
  };
  Kind kind = Kind::kSignature;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  int64_t int_value = 0;
  double float_value = 0;
  std::string array_type;  ///< "torch.Tensor", "numpy.ndarray": for messages
};

/// Builds an ir::Module from a class. Throws Failure (the first error; further independent ones in its
/// notes). Warnings are in Module::warnings.
ir::ModulePtr build_program(const ProgramSource& program, const BuildOptions& options);

/// A free @pl.function: a module with that one function (plus what it calls by bare name).
ir::ModulePtr build_function(const std::shared_ptr<FunctionSource>& function, const BuildOptions& options);

/// Specialises a JIT entry (01 section 6). `name` of the module is "_jit_<function>". After return, each
/// tensor argument's shape in the entry's parameter type has symbolic dims where the dimension is dynamic (01
/// L-69).
ir::ModulePtr build_jit(const std::shared_ptr<FunctionSource>& entry, const std::vector<ArgSpec>& args,
                        const BuildOptions& options);

}  // namespace pypto::sema
