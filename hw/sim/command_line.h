// SPDX-License-Identifier: GPL-2.0-or-later
//
// revosim's command line: its own options, job files, and jobs in fio's manner (--name=… begins
// one, what follows belongs to it; before the first --name options are as in [global]).
#ifndef REVODRIVE_SIM_COMMAND_LINE_H
#define REVODRIVE_SIM_COMMAND_LINE_H

#include <string>
#include <vector>

#include "sim/job_file.h"

namespace revodrive::sim {

struct CommandLine {
  std::string profile;                // name or file; empty: the first built-in one
  std::vector<std::string> settings;  // section.key=value
  std::string preset = "fresh";       // what the drives hold at the start
  std::string state;
  std::string output;
  bool json = false;
  bool bins = false;  // json+
  bool text = true;
  std::string timeline;
  int64_t timeline_from_ns = 0;
  int64_t timeline_to_ns = 100 * kNsPerMs;
  std::string histogram;
  std::string dump_commands;
  std::string placement = "stripe:64k";
  bool list_profiles = false;
  bool show_settings = false;
  bool help = false;
  bool version = false;
  std::vector<std::string> job_files;
  JobList jobs;
};

// Throws UserError.
CommandLine parse_command_line(const std::vector<std::string> &arguments);
extern const char *const kUsage;

}  // namespace revodrive::sim
#endif
