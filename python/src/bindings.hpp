// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module, one a file.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

/// Raise ValueError with the names there are.
const NamedFormat& format_named(const std::string& name);
Dtype dtype_called(const std::string& name);

void bind_table(nanobind::module_& module);     ///< BinadeTable and the one pass
void bind_logs(nanobind::module_& module);      ///< analyze, recommend, report, compare, policies
void bind_count(nanobind::module_& module);     ///< count, merge
void bind_results(nanobind::module_& module);   ///< what these give
void bind_run_log(nanobind::module_& module);   ///< the writer behind the recorders
void bind_arrays(nanobind::module_& module);    ///< the emulator on arrays
void bind_alerts(nanobind::module_& module);    ///< --fail-if on a log under way
void bind_gathered(nanobind::module_& module);  ///< what a recorder keeps of a tensor
void bind_torch_tensors(nanobind::module_& module);  ///< PyTorch's tensors, where they are
void bind_device_count(nanobind::module_& module);   ///< those on a GPU, where built with CUDA
void bind_emulate(nanobind::module_& module);        ///< rounding in place, loss scaling at work
void bind_tensor_core(nanobind::module_& module);    ///< products of matrices

}  // namespace halfscope::python
