// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/command_line.h"

#include "sim/user_error.h"

namespace revodrive::sim {

const char *const kUsage =
    R"(Usage: revosim [OPTION…] JOBFILE…
       revosim [OPTION…] --name=NAME --rw=KIND [--fio-option=VALUE…] [--name=…]

Runs fio jobs on the model of an OCZ RevoDrive 3 X2, in virtual time.

  --profile=NAME|FILE        the product: a built-in profile (--list-profiles) or a file
  --set=SECTION.KEY=VALUE    overrides a number of the profile; may come several times
  --placement=stripe[:CHUNK]|dispatch[:GRANULE]
                             how filename=card spreads over the SSDs (stripe:64k)
  --placement=vca-stripe[:CHUNK]|vca-dispatch[:CHUNK]
                             the card makes one SAS disk of its SSDs (mode=vca), by that policy
  --preset=fresh|full|steady what the drives hold: nothing, everything written once in order, or
                             that and written at random since until collection is in balance
  --state=FILE               starts with the drives as FILE has them, if it is there, and stores
                             them in it at the end
  --output-format=FORMAT     normal, json, json+ (with latency bins), or two: normal,json
  --output=FILE              results into FILE instead of standard output
  --timeline=FILE            what each link, engine, channel and die did, for ui.perfetto.dev
  --timeline-window=FROM-TO  only that span of virtual time, as 10ms-20ms (the first 100 ms)
  --histogram=FILE           latencies of reads, writes, trims, syncs; text, or JSON if named .json
  --dump-commands=FILE       each ATA command with its times, as CSV
  --list-profiles            names of the built-in profiles
  --show-settings            all numbers in force, as --set takes them
  --version, --help

Targets are filename=card (all SSDs as one volume) and ssd0 to ssd7. All options of jobs:
docs/revosim.md.
)";

namespace {

class Parser {
 public:
  explicit Parser(const std::vector<std::string> &arguments) : arguments_(arguments) {}
  CommandLine parse();

 private:
  void option(const std::string &argument);
  bool own_option(const std::string &name, const std::string &value);
  bool own_flag(const std::string &name);
  void window(const std::string &value);
  void format(const std::string &value);

  const std::vector<std::string> &arguments_;
  size_t at_ = 0;
  CommandLine line_;
  bool any_job_ = false;
  bool any_window_ = false;
};

CommandLine Parser::parse() {
  bool only_files = false;
  for (; at_ < arguments_.size(); at_++) {
    const std::string &argument = arguments_[at_];
    if (argument == "--") {
      only_files = true;
    } else if (only_files || argument == "-" || !argument.starts_with("-")) {
      line_.job_files.push_back(argument);
    } else if (argument.starts_with("--")) {
      option(argument.substr(2));
    } else if (argument == "-h") {
      line_.help = true;
    } else {
      refuse("command line: '%s': options begin with --", argument.c_str());
    }
  }
  if (any_window_ && line_.timeline.empty())
    refuse("command line: --timeline-window without --timeline: name the file of the trace");
  if (any_job_ && !line_.job_files.empty())
    refuse("command line: job file '%s' and --name: jobs come from files or from the command line",
           line_.job_files[0].c_str());
  for (const std::string &file : line_.job_files)
    line_.jobs.read_file(file);
  return std::move(line_);
}

void Parser::option(const std::string &argument) {
  size_t equals = argument.find('=');
  std::string name = argument.substr(0, equals);
  bool has_value = equals != std::string::npos;
  std::string value = has_value ? argument.substr(equals + 1) : "";
  if (!has_value && own_flag(name))
    return;
  if (!has_value && !is_flag(name)) {
    if (at_ + 1 == arguments_.size())
      refuse("command line: option '--%s' needs a value", name.c_str());
    value = arguments_[++at_];
  }
  if (own_option(name, value))
    return;
  std::string where = "command line";
  if (name == "name") {
    line_.jobs.begin(value, where);
    any_job_ = true;
  } else {
    line_.jobs.set(name, value, where);
  }
}

bool Parser::own_flag(const std::string &name) {
  bool *flag = name == "help"            ? &line_.help
               : name == "version"       ? &line_.version
               : name == "list-profiles" ? &line_.list_profiles
               : name == "show-settings" ? &line_.show_settings
                                         : nullptr;
  if (flag)
    *flag = true;
  return flag;
}

bool Parser::own_option(const std::string &name, const std::string &value) {
  struct Text {
    const char *name;
    std::string *to;
  };
  const Text texts[] = {
      {"profile", &line_.profile},     {"state", &line_.state},
      {"output", &line_.output},       {"timeline", &line_.timeline},
      {"histogram", &line_.histogram}, {"dump-commands", &line_.dump_commands},
      {"placement", &line_.placement}, {"preset", &line_.preset},
  };
  for (const Text &text : texts) {
    if (name == text.name) {
      if (value.empty())
        refuse("command line: option '--%s' needs a value that is not empty", text.name);
      *text.to = value;
      return true;
    }
  }
  if (name == "set" && value.empty())
    refuse("command line: option '--set' needs a value: SECTION.KEY=VALUE");
  if (name == "set")
    line_.settings.push_back(value);
  else if (name == "output-format")
    format(value);
  else if (name == "timeline-window")
    window(value);
  else
    return false;
  return true;
}

void Parser::format(const std::string &value) {
  line_.json = line_.text = line_.bins = false;
  for (std::string_view word : split(value, ',')) {
    line_.json |= word == "json" || word == "json+";
    line_.bins |= word == "json+";
    line_.text |= word == "normal";
    if (word != "json" && word != "json+" && word != "normal")
      refuse("command line: --output-format=%s: must be normal, json, json+ or normal,json",
             value.c_str());
  }
}

void Parser::window(const std::string &value) {
  size_t dash = value.find('-');
  auto from = parse_time_ns(value.substr(0, dash), kNsPerSecond);
  auto to = dash == std::string::npos ? std::nullopt
                                      : parse_time_ns(value.substr(dash + 1), kNsPerSecond);
  if (!from || !to || *from >= *to)
    refuse("command line: --timeline-window=%s: must be FROM-TO, two times such as 10ms-20ms",
           value.c_str());
  any_window_ = true;
  line_.timeline_from_ns = *from;
  line_.timeline_to_ns = *to;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string> &arguments) {
  return Parser(arguments).parse();
}

}  // namespace revodrive::sim
