// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/message.hpp"

#include <string>
#include "catch.hpp"

namespace halfscope::analyzers::frames::test_message {
namespace {

TEST_CASE("an option is spelled for the command line and for Python", "[table]") {
  struct Row {
    Message message;
    const char *flag, *argument;
  };
  const Row row = GENERATE(values<Row>({
      {Option::amax, "--amax", "amax="},
      {{Option::amax, "FILE", "[...]"}, "--amax FILE", "amax=[...]"},
      {Option::as, "--as", "read_as="},
      {as_bf16(), "--as bf16", "read_as='bf16'"},
      {Option::assume_constant_between, "--assume-constant-between",
       "assume_constant_between=True"},
      {Option::lines, "--lines", "lines="},
      {Option::lr, "--lr", "learning_rate="},
      {{Option::lr, "X"}, "--lr X", "learning_rate=X"},
      {Option::recorded_scale, "--recorded-scale", "recorded_scale="},
      {{Option::recorded_scale, "S"}, "--recorded-scale S", "recorded_scale=S"},
      {Option::role, "--role", "roles="},
      {role_option(), "--role GLOB=ROLE", "roles={GLOB: ROLE}"},
      {role_option("*", "weight"), "--role '*=weight'", "roles={'*': 'weight'}"},
      {Option::step, "--step", "steps=slice(first, end)"},
      {Option::subnormals, "--subnormals", "subnormals="},
      {Option::tensor, "--tensor", "tensor="},
  }));
  CHECK(row.message.text() == row.flag);
  CHECK(row.message.in_python() == row.argument);
}

TEST_CASE("only options are spelled anew: a file may be called --step") {
  const std::string file = "runs/--step --amax";
  Message message = file + ": expected " + Option::step + " or " + Option::tensor;
  message += "; " + role_option();
  CHECK(message.text() == "runs/--step --amax: expected --step or --tensor; --role GLOB=ROLE");
  CHECK(message.in_python() ==
        "runs/--step --amax: expected steps=slice(first, end) or tensor=; roles={GLOB: ROLE}");
  CHECK(Message(file).in_python() == file);
  CHECK(message != Message(message.text()));
}

TEST_CASE("bad input keeps its message through a catch of its base") {
  const auto caught = [](const auto& error) {
    try {
      throw error;
    } catch (const log::BadInput& base) {
      CHECK(std::string(base.what()) == message_of(base).text());
      return message_of(base).in_python();
    }
  };
  CHECK(caught(InputNeedsOption("want " + Message(Option::step))) ==
        "want steps=slice(first, end)");
  CHECK(caught(log::BadInput("want --step")) == "want --step");
}

}  // namespace
}  // namespace halfscope::analyzers::frames::test_message
