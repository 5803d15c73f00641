// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/job_options.h"

#include <glib.h>

#include <algorithm>
#include <bit>

#include "revodrive/host.h"
#include "sim/option_values.h"
#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

constexpr unsigned kMostDepth = 4096;
constexpr unsigned kMostClones = 256;

struct Option {
  std::string_view name;
  std::string_view alias;
  bool flag;  // may stand without a value
  void (*set)(JobOptions &job, std::string_view value);
};

void ignore(JobOptions &, std::string_view) {
}

std::vector<std::string> files_value(std::string_view text) {
  std::vector<std::string> files;
  for (std::string_view file : split(text, ':'))
    files.emplace_back(file);
  return files;
}

std::vector<double> percentiles_value(std::string_view text) {
  std::vector<double> list;
  for (std::string_view part : split(text, ':')) {
    auto value = parse_real(part);
    if (!value || *value <= 0 || *value > 100)
      throw BadValue{"percentages above 0 up to 100, separated by ':'"};
    list.push_back(*value);
  }
  if (list.size() > 20)
    throw BadValue{"at most 20 percentages"};
  std::sort(list.begin(), list.end());
  return list;
}

void set_start_delay(JobOptions &job, std::string_view v) {
  size_t dash = v.find('-');
  job.start_delay_ns.first = time_value(v.substr(0, dash), kNsPerSecond);
  job.start_delay_ns.second = dash == std::string_view::npos
                                  ? job.start_delay_ns.first
                                  : time_value(v.substr(dash + 1), kNsPerSecond);
  if (job.start_delay_ns.second < job.start_delay_ns.first)
    throw BadValue{"a time, or MIN-MAX with MIN not above MAX"};
}

void set_percentage_random(JobOptions &job, std::string_view v) {
  PerDirection<uint64_t> values{100, 100, 100};
  values = by_direction(v, values, 0, 100, false);
  for (unsigned i = 0; i < kDirections; i++)
    job.percentage_random[i] = static_cast<unsigned>(values[i]);
}

void set_engine(JobOptions &, std::string_view v) {
  if (v.empty())
    throw BadValue{"the name of an engine"};
}

using J = JobOptions &;
using V = std::string_view;

constexpr uint64_t kMostBytes = uint64_t{1} << 60;

unsigned small(V v, uint64_t min, uint64_t max) {
  return static_cast<unsigned>(number_in(v, min, max));
}

const Option kOptions[] = {
    // What and where.
    {"name", "", false, [](J j, V v) { j.name = v; }},
    {"description", "", false, [](J j, V v) { j.description = v; }},
    {"filename", "", false, [](J j, V v) { j.files = files_value(v); }},
    {"rw", "readwrite", false, [](J j, V v) { j.direction = direction_value(v); }},
    {"bs", "blocksize", false, set_block_size},
    {"bsrange", "blocksize_range", false, set_block_range},
    {"bssplit", "", false, set_block_split},
    {"blockalign", "ba", false,
     [](J j, V v) { j.align = by_direction(v, j.align, RD_SECTOR_BYTES, 1 << 30, true); }},
    {"size", "", false, [](J j, V v) { j.size = size_value(v); }},
    {"offset", "", false, [](J j, V v) { j.offset = v == "0" ? SizeOrShare{} : size_value(v); }},
    {"offset_increment", "", false,
     [](J j, V v) { j.offset_increment = bytes_in(v, 0, kMostBytes); }},
    {"io_size", "io_limit", false, [](J j, V v) { j.io_size = size_value(v); }},
    {"filesize", "", false, [](J j, V v) { j.file_size = size_value(v); }},
    {"number_ios", "", false, [](J j, V v) { j.number_ios = bytes_in(v, 1, kMostBytes); }},
    {"loops", "", false, [](J j, V v) { j.loops = small(v, 1, 1000000); }},
    // How many at once.
    {"iodepth", "", false, [](J j, V v) { j.depth = small(v, 1, kMostDepth); }},
    {"numjobs", "", false, [](J j, V v) { j.clones = small(v, 1, kMostClones); }},
    {"stonewall", "wait_for_previous", true, [](J j, V v) { j.stonewall = boolean(v); }},
    {"new_group", "", true, [](J j, V v) { j.new_group = boolean(v); }},
    {"group_reporting", "", true, [](J j, V v) { j.group_reporting = boolean(v); }},
    // When.
    {"runtime", "timeout", false, [](J j, V v) { j.runtime_ns = time_value(v, kNsPerSecond); }},
    {"time_based", "", true, [](J j, V v) { j.time_based = boolean(v); }},
    {"ramp_time", "", false, [](J j, V v) { j.ramp_ns = time_value(v, kNsPerSecond); }},
    {"startdelay", "", false, set_start_delay},
    {"thinktime", "", false, [](J j, V v) { j.think_ns = time_value(v, kNsPerUs); }},
    {"thinktime_blocks", "", false, [](J j, V v) { j.think_blocks = small(v, 1, 1 << 30); }},
    {"rate", "", false, [](J j, V v) { j.rate = by_direction(v, j.rate, 1, kMostBytes, true); }},
    {"rate_iops", "", false,
     [](J j, V v) { j.rate_iops = by_direction(v, j.rate_iops, 1, 1000000000, false); }},
    // Which block next.
    {"rwmixread", "", false, [](J j, V v) { j.mix_read = small(v, 0, 100); }},
    {"rwmixwrite", "", false, [](J j, V v) { j.mix_read = 100 - small(v, 0, 100); }},
    {"random_distribution", "", false, set_distribution},
    {"percentage_random", "", false, set_percentage_random},
    {"norandommap", "", true, [](J j, V v) { j.no_random_map = boolean(v); }},
    {"randseed", "", false,
     [](J j, V v) {
       j.seed = number_in(v, 0, UINT64_MAX);
       j.seed_given = true;
     }},
    {"randrepeat", "", false, [](J j, V v) { j.repeat = boolean(v); }},
    {"allrandrepeat", "", true, [](J j, V v) { j.repeat = boolean(v); }},
    // Syncs.
    {"fsync", "", false, [](J j, V v) { j.sync_every = small(v, 0, 1 << 30); }},
    {"fdatasync", "", false, [](J j, V v) { j.sync_every = small(v, 0, 1 << 30); }},
    {"end_fsync", "", true, [](J j, V v) { j.sync_at_end = boolean(v); }},
    // Data.
    {"zero_buffers", "", true, [](J j, V v) { j.buffer.zero = boolean(v); }},
    {"refill_buffers", "", true, [](J j, V v) { j.buffer.refill = boolean(v); }},
    {"scramble_buffers", "", true, [](J j, V v) { j.buffer.scramble = boolean(v); }},
    {"buffer_compress_percentage", "", false,
     [](J j, V v) { j.buffer.compress_percent = static_cast<int>(small(v, 0, 100)); }},
    {"buffer_compress_chunk", "", false,
     [](J j, V v) { j.buffer.compress_chunk = bytes_in(v, 0, 1 << 30); }},
    {"dedupe_percentage", "", false, [](J j, V v) { j.buffer.dedupe_percent = small(v, 0, 100); }},
    {"buffer_pattern", "", false, [](J j, V v) { j.buffer.pattern = pattern_value(v); }},
    // Replay.
    {"read_iolog", "", false, [](J j, V v) { j.replay.log = v; }},
    {"write_iolog", "", false, [](J j, V v) { j.write_log = v; }},
    {"replay_no_stall", "", true, [](J j, V v) { j.replay.no_stall = boolean(v); }},
    {"replay_time_scale", "", false, [](J j, V v) { j.replay.time_scale = small(v, 1, 10000); }},
    {"replay_redirect", "", false, [](J j, V v) { j.replay.redirect = v; }},
    {"replay_scale", "", false, [](J j, V v) { j.replay.scale = number_in(v, 1, 1 << 30); }},
    {"replay_align", "", false,
     [](J j, V v) { j.replay.align = bytes_in(v, RD_SECTOR_BYTES, 1 << 30); }},
    {"replay_wrap", "", true, [](J j, V v) { j.replay.wrap = boolean(v); }},
    // Reports.
    {"percentile_list", "", false, [](J j, V v) { j.percentiles = percentiles_value(v); }},
    // Harmless here: the card is the engine, there is no page cache and no thread.
    {"ioengine", "", false, set_engine},
    {"direct", "", true, [](J, V v) { boolean(v); }},
    {"invalidate", "", true, ignore},
    {"thread", "", true, ignore},
    {"gtod_reduce", "", true, ignore},
};

const Option *find(std::string_view name) {
  for (const Option &option : kOptions) {
    if (option.name == name || (!option.alias.empty() && option.alias == name))
      return &option;
  }
  return nullptr;
}

// Options of fio that people use, with the reason why they make no sense or are missing here.
const char *reason(std::string_view name) {
  struct Known {
    std::string_view name;
    const char *why;
  };
  constexpr Known kKnown[] = {
      {"unlink", "the card has no files that could be removed"},
      {"verify", "revosim keeps no data that could be verified; use a guest (scripts/guest)"},
      {"do_verify", "revosim keeps no data that could be verified; use a guest (scripts/guest)"},
      {"directory", "the card has no files; targets are card and ssd0 to ssd7"},
      {"nrfiles", "the card has no files; name several targets: filename=ssd0:ssd1"},
      {"buffered", "there is no page cache: all I/O is direct"},
      {"fallocate", "the card has no files"},
      {"include", "job files cannot include others"},
      {"zonemode", "the card has no zones"},
      {"ioscheduler", "there is no I/O scheduler"},
      {"cpus_allowed", "there are no processors"},
  };
  for (const Known &known : kKnown) {
    if (known.name == name)
      return known.why;
  }
  return "revosim does not know it (docs/revosim.md lists those it does)";
}

}  // namespace

void set_option(JobOptions &job, std::string_view name, std::string_view value,
                const std::string &where) {
  std::string key(name);
  std::string text(value);
  check_utf8("option", name, where);
  const Option *option = find(name);
  if (!option)
    refuse("%s: option '%s=%s' is not supported: %s", where.c_str(), key.c_str(), text.c_str(),
           reason(name));
  check_utf8("value", value, where);
  if (value.empty() && !option->flag)
    refuse("%s: option '%s' needs a value", where.c_str(), key.c_str());
  try {
    option->set(job, value);
  } catch (const BadValue &bad) {
    refuse("%s: option '%s=%s': must be %s", where.c_str(), key.c_str(), text.c_str(),
           bad.allowed.c_str());
  }
  job.given[std::string(option->name)] = value.empty() ? "1" : text;
  job.given_where[std::string(option->name)] = where;
}

bool is_flag(std::string_view name) {
  const Option *option = find(name);
  return option && option->flag;
}

const char *where_of(const JobOptions &job, std::initializer_list<const char *> options) {
  for (const char *option : options) {
    auto found = job.given_where.find(option);
    if (found != job.given_where.end())
      return found->second.c_str();
  }
  return job.where.c_str();
}

void check_utf8(const char *what, std::string_view text, const std::string &where) {
  if (g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr))
    return;
  g_autofree char *readable = g_utf8_make_valid(text.data(), static_cast<gssize>(text.size()));
  refuse("%s: %s '%s': must be UTF-8, as it goes into JSON", where.c_str(), what, readable);
}

void check_job(const JobOptions &job) {
  const char *name = job.name.c_str();
  if (job.time_based && job.runtime_ns == 0)
    refuse("%s: job '%s': time_based needs a runtime", where_of(job, {"time_based"}), name);
  for (unsigned i = 0; i < kDirections; i++) {
    if (job.align[i] % RD_SECTOR_BYTES != 0)
      refuse("%s: job '%s': blockalign=%llu: must be a multiple of 512",
             where_of(job, {"blockalign"}), name, static_cast<unsigned long long>(job.align[i]));
  }
  if (job.replay.align != 0 && !std::has_single_bit(job.replay.align))
    refuse("%s: job '%s': replay_align=%llu: must be a power of two",
           where_of(job, {"replay_align"}), name,
           static_cast<unsigned long long>(job.replay.align));
  if (job.buffer.zero && !job.buffer.pattern.empty())
    refuse("%s: job '%s': buffer_pattern contradicts zero_buffers (%s)",
           where_of(job, {"buffer_pattern"}), name, where_of(job, {"zero_buffers"}));
  constexpr unsigned kWrite = static_cast<unsigned>(Op::kWrite);
  constexpr unsigned kTrim = static_cast<unsigned>(Op::kTrim);
  bool one_size = job.block_min[kWrite] == job.block_max[kWrite] &&
                  job.block_min[kTrim] == job.block_max[kTrim] &&
                  job.block_min[kWrite] == job.block_min[kTrim];
  if (job.direction.trim_then_write && !one_size)
    refuse("%s: job '%s': trimwrite needs one block size, for writes as for trims",
           where_of(job, {"bs", "bsrange", "bssplit"}), name);
}

}  // namespace revodrive::sim
