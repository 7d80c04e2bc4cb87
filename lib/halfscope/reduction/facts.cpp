// SPDX-License-Identifier: Apache-2.0
#include "halfscope/reduction/facts.hpp"

#include <cmath>

namespace halfscope::reduction {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

Facts& Facts::operator+=(const Facts& other) {
  elements += other.elements;
  nonfinite += other.nonfinite;
  flushed += other.flushed;
  additions += other.additions;
  lost += other.lost;
  overflow += other.overflow;
  squared_error += other.squared_error;
  squared_exact += other.squared_exact;
  error_ulp += other.error_ulp;
  squared_error_ulp += other.squared_error_ulp;
  return *this;
}

void Facts::add(const Errors& errors) {
  squared_error.add(errors.squared_error);
  squared_exact.add(errors.squared_exact);
  error_ulp.add(errors.ulp);
  squared_error_ulp.add(errors.squared_ulp);
}

double Facts::lost_share() const {
  return ratio(static_cast<double>(lost), static_cast<double>(additions));
}

double Facts::relative_l2() const {
  const double error = squared_error.value();
  return error == 0 ? 0 : std::sqrt(error / squared_exact.value());
}

double Facts::mean_error_ulp() const {
  return ratio(error_ulp.value(), static_cast<double>(measured()));
}

double Facts::mean_error_se() const {
  if (measured() < 2) return 0;
  const auto n = static_cast<double>(measured());
  const double mean = mean_error_ulp();
  const double squares = squared_error_ulp.value() - n * mean * mean;
  return std::sqrt(std::fmax(0.0, squares) / (n * (n - 1)));
}

}  // namespace halfscope::reduction
