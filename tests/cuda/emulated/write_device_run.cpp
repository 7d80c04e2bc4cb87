// SPDX-License-Identifier: Apache-2.0
// write_device_run NETWORK PRECISION LOSS-SCALE STEPS OUT: a run of the cuDNN backend on the
// emulated device, every operation checked, for the tests of what is made of such runs. LOSS-SCALE
// is a policy, or none.
#include <cstdlib>
#include <iostream>
#include <string>

#include "sim/training.hpp"

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "write_device_run NETWORK PRECISION LOSS-SCALE STEPS OUT\n";
    return 2;
  }
  try {
    using namespace halfscope;
    const std::string scaling = argv[3];
    sim::training::Settings settings = test::settings(argv[2], scaling == "none" ? "" : scaling,
                                                      *sim::networks::find_network(argv[1]));
    settings.steps = std::atoll(argv[4]);
    settings.cudnn = true;
    settings.check_operations = true;
    sim::training::train(settings, argv[5], {});
  } catch (const std::exception& error) {
    std::cerr << "write_device_run: " << error.what() << '\n';
    return 1;
  }
}
