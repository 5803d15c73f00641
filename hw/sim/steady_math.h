// SPDX-License-Identifier: GPL-2.0-or-later
//
// Powers that are the same on every machine: the C library's pow() may differ in the last bit
// between processors. Error below 1e-12 of the value, which is far beyond what a random
// distribution needs.
#ifndef REVODRIVE_SIM_STEADY_MATH_H
#define REVODRIVE_SIM_STEADY_MATH_H

namespace revodrive::sim {

double steady_log2(double value);                 // value > 0
double steady_pow(double base, double exponent);  // base > 0; result within double's range

}  // namespace revodrive::sim
#endif
