// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module, one in each file.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

/// Return the format or type of that name; throw ValueError if there is none.
const NamedFormat& format_named(const std::string& name);
Dtype dtype_called(const std::string& name);

void bind_table(nanobind::module_& module);     ///< BinadeTable, measure()
void bind_logs(nanobind::module_& module);      ///< analyze, recommend, report, compare, policies
void bind_count(nanobind::module_& module);     ///< count, merge
void bind_results(nanobind::module_& module);   ///< results of bind_logs()
void bind_run_log(nanobind::module_& module);   ///< the log writer of the recorders
void bind_arrays(nanobind::module_& module);    ///< rounding and arithmetic on arrays
void bind_blocks(nanobind::module_& module);    ///< recipes of block formats on arrays
void bind_alerts(nanobind::module_& module);    ///< --fail-if on a log that is still written
void bind_gathered(nanobind::module_& module);  ///< statistics that a recorder keeps
void bind_tensors_in_memory(nanobind::module_& module);  ///< arrays as a log
void bind_torch_tensors(nanobind::module_& module);      ///< PyTorch's tensors in CPU memory
void bind_arrivals(nanobind::module_& module);           ///< hooks on gradients on a GPU
void bind_passes(nanobind::module_& module);             ///< hooks on parameters
void bind_device_count(nanobind::module_& module);  ///< tensors on a GPU; only in builds with CUDA
void bind_emulate(nanobind::module_& module);       ///< rounding in place, loss scaling
void bind_tensor_core(nanobind::module_& module);   ///< products of matrices
void bind_optimizer(nanobind::module_& module);     ///< steps of optimizers on arrays

}  // namespace halfscope::python
