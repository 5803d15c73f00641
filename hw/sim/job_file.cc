// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/job_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sim/user_error.h"

namespace revodrive::sim {

void JobList::begin(std::string_view name, const std::string &where) {
  check_utf8("job", name, where);
  in_global_ = name == "global";
  if (in_global_)
    return;
  jobs_.push_back(global_);
  jobs_.back().name = name;
  jobs_.back().where = where;
}

void JobList::set(std::string_view name, std::string_view value, const std::string &where) {
  set_option(in_global_ ? global_ : jobs_.back(), name, value, where);
}

void JobList::read(std::string_view text, const std::string &file_name) {
  // Each file has its own [global].
  global_ = {};
  in_global_ = true;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    number++;
    read_line(line, file_name + ":" + std::to_string(number));
  }
}

// Of fio's parser (3.33, init.c): a comment begins anywhere in a line, also inside quotes.
void JobList::read_line(std::string_view line, const std::string &where) {
  if (line.find('\0') != std::string_view::npos)
    refuse("%s: the line has a NUL byte: a job file is text, in UTF-8", where.c_str());
  line = trimmed(line.substr(0, line.find_first_of(";#")));
  if (line.empty())
    return;
  if (line[0] == '[') {
    if (line.back() != ']' || line.size() < 3)
      refuse("%s: '%s': a section is [name]", where.c_str(), std::string(line).c_str());
    return begin(line.substr(1, line.size() - 2), where);
  }
  size_t equals = line.find('=');
  std::string_view name = trimmed(line.substr(0, equals));
  std::string_view value = equals == std::string_view::npos ? "" : trimmed(line.substr(equals + 1));
  if (value.find("${") != std::string_view::npos)
    refuse("%s: option '%s=%s': variables are not expanded", where.c_str(),
           std::string(name).c_str(), std::string(value).c_str());
  set(name, value, where);
}

void JobList::read_file(const std::string &path) {
  read(file_text(path), path == "-" ? "standard input" : path);
}

std::vector<JobOptions> JobList::take() {
  if (jobs_.empty())
    refuse("there is no job: name a job file, or describe one with --name=NAME --rw=KIND ...");
  for (const JobOptions &job : jobs_)
    check_job(job);
  return std::move(jobs_);
}

std::string file_text(const std::string &path) {
  struct Close {
    void operator()(FILE *file) const {
      if (file != stdin)
        std::fclose(file);
    }
  };
  std::unique_ptr<FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file)
    refuse("%s: cannot be opened: %s", path.c_str(), std::strerror(errno));
  std::string text;
  char piece[65536];
  while (size_t got = std::fread(piece, 1, sizeof(piece), file.get()))
    text.append(piece, got);
  if (std::ferror(file.get()))
    refuse("%s: cannot be read: %s", path.c_str(), std::strerror(errno));
  return text;
}

}  // namespace revodrive::sim
