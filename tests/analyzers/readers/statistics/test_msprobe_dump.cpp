// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_msprobe_dump {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;
using log::Role;

std::string tensor(const std::string& max, const std::string& min,
                   const std::string& dtype = "torch.float16") {
  return R"({"type": "torch.Tensor", "dtype": ")" + dtype + R"(", "shape": [2, 3], "Max": )" + max +
         R"(, "Min": )" + min + R"(, "Mean": 0.5, "Norm": 1.5, "requires_grad": true})";
}

std::string node(const std::string& name, const std::string& inputs, const std::string& outputs) {
  return '"' + name + R"(": {"input_args": [)" + inputs +
         R"(], "input_kwargs": {"scale": {"type": "float", "value": 2.5}}, "output": [)" + outputs +
         "]}";
}

std::string dump(const std::string& nodes) {
  return R"({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null,
 "data": {)" +
         nodes + "}}\n";
}

TEST_CASE("msprobe dump: largest magnitudes of every input and output, in the order of nodes") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "dump/step3/rank0");
  std::filesystem::create_directories(folder / "dump/step3/rank1");
  const std::string forward =
      node("Module.b.Linear.forward.0", tensor("1.5", "-2.0"),
           tensor("3.0", "0.0") + ", null, [" + tensor("4.0", "-4.5") + "]");
  const std::string backward = R"("Module.a.Linear.backward.0": {"input": [)" +
                               tensor("Infinity", "-1.0") + R"(], "output": [)" +
                               tensor("NaN", "NaN") + R"(]}, "Module.a.Linear.parameters_grad":
      {"weight": [)" + tensor("\"inf\"", "-1.0") +
                               R"(], "bias": [)" + tensor("0.25", "-0.5") + "]}";
  folder.write("dump/step3/rank0/dump.json", dump(forward + ", " + backward));
  folder.write("dump/step3/rank0/stack.json", "{\"Module\": []}");
  folder.write("dump/step3/rank1/dump.json",
               dump(node("Module.b.Linear.forward.0", tensor("1.0", "-7.0"), tensor("1", "0"))));
  const Told told = told_of(folder / "dump");
  const auto* const input = told.peak("Module.b.Linear.forward.0.input.0", 3);
  REQUIRE(input != nullptr);
  CHECK(input->role == Role::activation);
  CHECK(input->max_abs == 7.0);
  CHECK(!input->at_least);
  CHECK(told.peak("Module.b.Linear.forward.0.output.0", 3)->max_abs == 3.0);
  CHECK(told.peak("Module.b.Linear.forward.0.output.2.0", 3)->max_abs == 4.5);
  const auto* const gradient = told.peak("Module.a.Linear.backward.0.output.0", 3);
  REQUIRE(gradient != nullptr);
  CHECK(gradient->role == Role::activation_grad);
  CHECK(std::isnan(gradient->max_abs));
  const auto* const weight = told.peak("Module.a.Linear.parameters_grad.weight", 3);
  REQUIRE(weight != nullptr);
  CHECK(weight->role == Role::weight_grad);
  CHECK(std::isinf(weight->max_abs));
  std::vector<std::string> order;
  for (const auto& peak : told.peaks) {
    if (!peak.tensor.empty()) order.push_back(peak.tensor);
  }
  REQUIRE(order.size() == 7);
  CHECK(order.front() == "Module.b.Linear.forward.0.input.0");
  CHECK(order.back() == "Module.a.Linear.parameters_grad.bias");
  CHECK(!told.leaves_open(Gap::rounded));
  CHECK(told.leaves_open(Gap::counts));
  CHECK(told_of(folder / "dump/step3/rank1").peak("Module.b.Linear.forward.0.input.0", 3) !=
        nullptr);
  CHECK(told_of(folder / "dump/step3/rank1/dump.json").peaks.size() >= 2);
}

TEST_CASE("msprobe dump: the first node that makes NaN or infinities, over all ranks") {
  const TempFolder folder;
  for (const char* rank : {"d/step0/rank0", "d/step0/rank1", "d/step1/rank0"}) {
    std::filesystem::create_directories(folder / rank);
  }
  const std::string finite = tensor("1.0", "-1.0"), bad = tensor("Infinity", "-1.0");
  const std::string mask = tensor("0.0", "-Infinity");
  folder.write("d/step0/rank0/dump.json",
               dump(node("Functional.masked_fill.0.forward", finite, mask) + "," +
                    node("Functional.softmax.0.forward", mask, finite) + "," +
                    node("Functional.linear.0.forward", finite, finite) + "," +
                    node("Functional.late.0.forward", finite, bad)));
  folder.write("d/step0/rank1/dump.json", dump(node("Tensor.empty.0.forward", "", bad) + "," +
                                               node("Functional.early.0.forward", finite, bad) +
                                               "," + node("Functional.next.0.forward", bad, bad)));
  folder.write("d/step1/rank0/dump.json", dump(node("Functional.soon.0.forward", finite, bad)));
  const Told told = told_of(folder / "d");
  CHECK(
      told.noted("step 0, rank 1: 'Functional.early.0.forward', node 2 of its dump, is the first "
                 "with finite inputs and NaN or infinite outputs"));
  CHECK(told.noted("2 tensors with a minimum of -inf and a finite maximum are taken for masks"));
  CHECK(told.peak("Functional.softmax.0.forward.input.0", 0)->max_abs == 0);
}

TEST_CASE("msprobe dump: integers and tensors without statistics have no magnitudes") {
  const TempFolder folder;
  const std::string ints = tensor("7", "-7", "torch.int64") + "," + tensor("true", "false", "Bool");
  const Told told = told_of(folder.write(
      "log", dump(node("Functional.f.0.forward", ints + "," + tensor("null", "null"),
                       R"({"dtype": "torch.float16"}, )" + tensor("2.0", "1.0", "BFloat16")))));
  CHECK(told.noted("2 tensors are without Max and Min"));
  std::size_t tensors = 0;
  for (const auto& peak : told.peaks) tensors += peak.tensor.empty() ? 0 : 1;
  CHECK(tensors == 1);
  CHECK(told.peak("Functional.f.0.forward.output.1", 0)->max_abs == 2.0);
  CHECK(told.peak("Functional.f.0.forward.output.1", 0)->min_abs_nonzero == 1.0);
  const Told debug = told_of(
      folder.write("debug", dump("\"my_grad.0.debug\": " + tensor("2.0", "-3.0", "Float32"))));
  CHECK(debug.peak("my_grad.0.debug", 0)->max_abs == 3.0);
}

TEST_CASE("msprobe dump: hostile text is told, what stands before it read") {
  const TempFolder folder;
  const std::string whole =
      dump(node("Functional.f.0.forward", tensor("1", "-1"), tensor("2", "0")) + ", ");
  const std::string begin = whole.substr(0, whole.rfind("}}"));
  const auto bad = GENERATE(std::string(2'000'000, '['), std::string("\"a\": {\"b\": 1e999}"),
                            std::string("\"a\": "), std::string("]"), std::string("\xff"));
  const Told told = told_of(folder.write("log", begin + bad));
  CHECK(told.peak("Functional.f.0.forward.output.0", 0) != nullptr);
  CHECK(told.noted("is not JSON at"));
  const std::string name(5000, 'x');
  const Told odd =
      told_of(folder.write("odd", dump(node(name, tensor("1", "-1"), "") + ", \"a\": 7, \"b\": [" +
                                       tensor("1", "0") + "], \"c\": \"text\"")));
  CHECK(odd.noted("a tensor is without Max and Min, or a name of 512 characters at most"));
}

}  // namespace test_msprobe_dump
