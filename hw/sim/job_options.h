// SPDX-License-Identifier: GPL-2.0-or-later
//
// What one job is to do, in fio's words (names, meaning, units and defaults of fio 3.33), and the
// table that reads it from text. Sizes in bytes, times in ns. Arrays go by direction: read, write,
// trim. What revosim does not do is refused, never ignored: docs/revosim.md has the whole list.
#ifndef REVODRIVE_SIM_JOB_OPTIONS_H
#define REVODRIVE_SIM_JOB_OPTIONS_H

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/io_request.h"
#include "sim/units.h"

namespace revodrive::sim {

template <typename T>
using PerDirection = std::array<T, kDirections>;

// Which way a job goes, and how it finds its next block.
struct Direction {
  bool reads = true;
  bool writes = false;
  bool trims = false;
  bool random = false;
  bool trim_then_write = false;  // trimwrite: each block is trimmed, then written
};

struct BlockSize {
  uint64_t bytes = 0;
  unsigned percent = 0;
};

enum class Spread : uint8_t { kUniform, kZipf, kPareto, kZoned };

// `access` percent of the I/Os go to the next `size` percent of the target.
struct Zone {
  unsigned access = 0;
  unsigned size = 0;
};

struct Distribution {
  Spread spread = Spread::kUniform;
  double parameter = 0;  // zipf: theta; pareto: power
  std::vector<Zone> zones;
};

struct Replay {
  std::string log;  // empty: no replay
  bool no_stall = false;
  unsigned time_scale = 100;  // percent of the recorded rate
  std::string redirect;
  uint64_t scale = 1;
  uint64_t align = 0;
  bool wrap = false;  // beyond the end: start again from 0 instead of failing
};

struct BufferOptions {
  bool zero = false;
  bool refill = false;
  bool scramble = true;
  int compress_percent = -1;  // 100: fully compressible; -1: not given
  uint64_t compress_chunk = 512;
  unsigned dedupe_percent = 0;
  std::vector<uint8_t> pattern;
};

struct JobOptions {
  std::string name;
  std::string description;
  std::string where;  // "file:line" of its header, for messages
  std::vector<std::string> files = {"card"};

  Direction direction;
  PerDirection<uint64_t> block_min = {4096, 4096, 4096};
  PerDirection<uint64_t> block_max = {4096, 4096, 4096};
  PerDirection<std::vector<BlockSize>> block_split;
  PerDirection<uint64_t> align = {};  // 0: the smallest block
  unsigned depth = 1;
  unsigned clones = 1;

  SizeOrShare size;
  SizeOrShare offset;
  SizeOrShare io_size;
  SizeOrShare file_size;
  uint64_t offset_increment = 0;
  uint64_t number_ios = 0;
  unsigned loops = 1;

  int64_t runtime_ns = 0;
  bool time_based = false;
  int64_t ramp_ns = 0;
  std::pair<int64_t, int64_t> start_delay_ns = {0, 0};

  unsigned mix_read = 50;
  PerDirection<Distribution> distribution;
  PerDirection<unsigned> percentage_random = {100, 100, 100};
  bool no_random_map = false;
  uint64_t seed = 0x89;  // as long as randseed is not given
  bool seed_given = false;
  bool repeat = true;

  PerDirection<uint64_t> rate = {};
  PerDirection<uint64_t> rate_iops = {};
  int64_t think_ns = 0;
  unsigned think_blocks = 1;
  unsigned sync_every = 0;
  bool sync_at_end = false;

  bool stonewall = false;
  bool new_group = false;
  bool group_reporting = false;

  BufferOptions buffer;
  Replay replay;
  std::string write_log;
  std::vector<double> percentiles;  // empty: fio's list

  // As the user wrote them, for the JSON report.
  std::map<std::string, std::string> given;
  std::map<std::string, std::string> given_where;  // "file:line" of each
};

// Where the first of these options that was given stands, maybe in [global]; if none was, the job.
const char *where_of(const JobOptions &job, std::initializer_list<const char *> options);

// Sets one option. Throws UserError that names the place, the option, the value and what is
// allowed.
void set_option(JobOptions &job, std::string_view name, std::string_view value,
                const std::string &where);
// Throws UserError if `text`, which is a `what`, is not UTF-8, as what goes into JSON must be.
void check_utf8(const char *what, std::string_view text, const std::string &where);
// Whether the option is one that may stand without a value (norandommap).
bool is_flag(std::string_view name);
// Checks what single options cannot see. Throws UserError.
void check_job(const JobOptions &job);

}  // namespace revodrive::sim
#endif
