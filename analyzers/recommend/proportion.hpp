// SPDX-License-Identifier: Apache-2.0
// A probability known from counting, with an interval.
#pragma once

namespace halfscope::analyzers::recommend {

/// A probability with a 95 % interval.
struct Proportion {
  double estimate = 0, low = 0, high = 0;
};

/// From successes in n trials: C. J. Clopper, E. S. Pearson, Biometrika 26, 1934. With none the
/// interval is one-sided, so its upper end is about 3 / n: J. A. Hanley, A. Lippman-Hand, JAMA 249,
/// 1983. Counts need not be whole: n may be an effective number. Nothing is known from n <= 0.
Proportion binomial(double successes, double n);

}  // namespace halfscope::analyzers::recommend
