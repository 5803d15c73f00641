// SPDX-License-Identifier: GPL-2.0-or-later
//
// Jobs from fio job files and from the command line. fio's ini dialect has keys without a value and
// ';' comments, which GKeyFile refuses, and errors have to name file and line: hence a reader of
// our own.
#ifndef REVODRIVE_SIM_JOB_FILE_H
#define REVODRIVE_SIM_JOB_FILE_H

#include <string>
#include <string_view>
#include <vector>

#include "sim/job_options.h"

namespace revodrive::sim {

class JobList {
 public:
  // A [section]: "global" changes what later jobs start from.
  void begin(std::string_view name, const std::string &where);
  // One option of the section that was begun last.
  void set(std::string_view name, std::string_view value, const std::string &where);
  // The text of a job file.
  void read(std::string_view text, const std::string &file_name);
  // Opens and reads; "-" is standard input. Throws UserError.
  void read_file(const std::string &path);

  // All jobs, checked, in order. Throws UserError if there is none.
  std::vector<JobOptions> take();
  const JobOptions &global() const { return global_; }

 private:
  void read_line(std::string_view line, const std::string &where);

  JobOptions global_;
  std::vector<JobOptions> jobs_;
  bool in_global_ = true;
};

// The whole file. Throws UserError that names it.
std::string file_text(const std::string &path);

}  // namespace revodrive::sim
#endif
