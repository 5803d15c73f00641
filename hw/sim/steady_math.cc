// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/steady_math.h"

#include <cmath>

namespace revodrive::sim {

namespace {

constexpr double kLn2 = 0.693147180559945309417;

}  // namespace

// value = m * 2^e with m in [sqrt(1/2), sqrt(2)), and ln m = 2 atanh((m - 1) / (m + 1)).
double steady_log2(double value) {
  int exponent;
  double m = std::frexp(value, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2;
    exponent--;
  }
  double t = (m - 1) / (m + 1);
  double square = t * t;
  double sum = 0;
  for (int i = 25; i >= 1; i -= 2)
    sum = sum * square + 1.0 / i;
  return exponent + 2 * t * sum / kLn2;
}

double steady_pow(double base, double exponent) {
  double log = exponent * steady_log2(base);
  double whole = std::floor(log + 0.5);
  double x = (log - whole) * kLn2;  // |x| <= 0.35
  double sum = 1;
  for (int i = 14; i >= 1; i--)
    sum = 1 + x / i * sum;
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace revodrive::sim
