// SPDX-License-Identifier: GPL-2.0-or-later
//
// Values of options that are more than one number: block sizes by direction, splits, distributions,
// patterns. Each throws BadValue with what is allowed.
#ifndef REVODRIVE_SIM_OPTION_VALUES_H
#define REVODRIVE_SIM_OPTION_VALUES_H

#include <string>
#include <string_view>
#include <vector>

#include "sim/job_options.h"

namespace revodrive::sim {

struct BadValue {
  std::string allowed;
};

uint64_t number_in(std::string_view text, uint64_t min, uint64_t max);
uint64_t bytes_in(std::string_view text, uint64_t min, uint64_t max);
bool boolean(std::string_view text);
int64_t time_value(std::string_view text, int64_t unit_ns);
SizeOrShare size_value(std::string_view text);
// "4k" for all, "4k,8k" for reads and the rest, "4k,,16k": what is empty stays.
PerDirection<uint64_t> by_direction(std::string_view text, PerDirection<uint64_t> values,
                                    uint64_t min, uint64_t max, bool sizes);

Direction direction_value(std::string_view text);
void set_block_size(JobOptions &job, std::string_view text);
void set_block_range(JobOptions &job, std::string_view text);
void set_block_split(JobOptions &job, std::string_view text);
void set_distribution(JobOptions &job, std::string_view text);
std::vector<uint8_t> pattern_value(std::string_view text);

}  // namespace revodrive::sim
#endif
