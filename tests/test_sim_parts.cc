// SPDX-License-Identifier: GPL-2.0-or-later
//
// revosim's parts without a card: numbers as fio writes them, options, addresses, data, statistics,
// placement, logs, state files.
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/address_source.h"
#include "sim/data_source.h"
#include "sim/dispatch.h"
#include "sim/iolog.h"
#include "sim/job_file.h"
#include "sim/latency_stats.h"
#include "sim/look_ahead.h"
#include "sim/placement.h"
#include "sim/state_file.h"
#include "sim/steady_math.h"
#include "sim/user_error.h"
// After all others: libcheck has macros with common names.
#include "random.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::sim;

namespace {

// What the call complains about; empty: nothing.
template <typename Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

std::vector<JobOptions> jobs_of(const std::string &text) {
  JobList list;
  list.read(text, "a.fio");
  return list.take();
}

bool names(const std::string &text, std::initializer_list<const char *> words) {
  return std::all_of(words.begin(), words.end(),
                     [&](const char *word) { return text.find(word) != std::string::npos; });
}

}  // namespace

START_TEST(numbers) {
  ck_assert(parse_bytes("4k") == 4096 && parse_bytes("4KB") == 4096 && parse_bytes("4ki") == 4000);
  ck_assert(parse_bytes("0x10") == 16 && parse_bytes("2G") == uint64_t{2} << 30);
  ck_assert(!parse_bytes("") && !parse_bytes("4q") && !parse_bytes("-1") && !parse_bytes("4kk"));
  ck_assert(!parse_bytes("99999999999999999999") && !parse_bytes("99999999p"));
  ck_assert(parse_time_ns("3", kNsPerSecond) == 3 * kNsPerSecond);
  ck_assert(parse_time_ns("2m", 1) == 120 * kNsPerSecond && parse_time_ns("5us", 1) == 5000);
  ck_assert(!parse_time_ns("5x", 1) && !parse_time_ns("9999999999999d", 1));
  ck_assert(parse_size("20%")->of(1000) == 200 && parse_size("1m")->of(5) == 1 << 20);
  ck_assert(!parse_size("0%") && !parse_size("101%"));
}
END_TEST

START_TEST(job_files) {
  auto jobs = jobs_of("; c\n[global]\nbs=8k\nnorandommap\n[a]\nrw = randread\n[b]\nbs=4k,16k\n");
  ck_assert_uint_eq(jobs.size(), 2);
  ck_assert(jobs[0].block_min[0] == 8192 && jobs[0].no_random_map && jobs[0].direction.random);
  ck_assert(jobs[1].block_min[0] == 4096 && jobs[1].block_min[1] == 16384);
  ck_assert(jobs[1].block_min[2] == 16384 && !jobs[1].direction.random);
}
END_TEST

// fio 3.33 cuts a line at the first of both, wherever it is.
START_TEST(comments_end_lines) {
  auto jobs = jobs_of("\xEF\xBB\xBF[r] ; a [job]\nrw=randread ; c # d\nbs=8k#c;d\nnorandommap;\n");
  ck_assert(jobs.size() == 1 && jobs[0].name == "r" && jobs[0].direction.random);
  ck_assert(jobs[0].block_min[0] == 8192 && jobs[0].no_random_map);
  ck_assert(names(complaint([] { jobs_of("[r]\nbs=;8k\n"); }), {"a.fio:2", "bs", "needs a value"}));
  ck_assert(
      names(complaint([] { jobs_of(std::string("[r]\nbs=4\0k\n", 11)); }), {"a.fio:2", "NUL"}));
  ck_assert(names(complaint([] { jobs_of("[r\xFF]\n"); }), {"a.fio:1", "UTF-8"}));
}
END_TEST

START_TEST(bad_options_name_place_option_and_value) {
  auto bad = [](const std::string &line) {
    return complaint([&] { jobs_of("[a]\n" + line + "\n"); });
  };
  for (const char *line :
       {"bs=1000", "bs=0", "rw=rondread", "iodepth=0", "rwmixread=101", "bsrange=8k-4k",
        "bssplit=4k/50:8k/60", "random_distribution=zipf:1", "random_distribution=zoned:50/50",
        "buffer_pattern=abc", "runtime=soon", "size=110%", "verify=crc32c", "unlink=1", "foo=bar",
        "loops=0", "numjobs=1000", "replay_align=1000", "percentile_list=0"}) {
    std::string text(line);
    std::string option = text.substr(0, text.find('='));
    std::string value = text.substr(text.find('=') + 1);
    std::string said = bad(text);
    bool placed = names(said, {"a.fio:"});
    ck_assert_msg(
        placed && said.find(option) != std::string::npos && said.find(value) != std::string::npos,
        "%s: \"%s\"", line, said.c_str());
  }
  ck_assert(names(bad("time_based"), {"runtime"}));
  ck_assert(names(complaint([] { jobs_of("; nothing\n"); }), {"no job"}));
}
END_TEST

START_TEST(permutation_visits_each_once) {
  Random random(test::seed());
  for (uint64_t count : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097}) {
    std::vector<bool> seen(count);
    Permutation order(count, random.next());
    for (uint64_t i = 0; i < count; i++) {
      uint64_t value = order.at(i);
      ck_assert(value < count && !seen[value]);
      seen[value] = true;
    }
  }
}
END_TEST

// Share of the accesses that the busiest fifth of the blocks gets.
static double top_fifth(const char *distribution) {
  JobOptions job;
  set_option(job, "random_distribution", distribution, "test");
  constexpr uint64_t kBlocks = 1000;
  constexpr int kDraws = 200000;
  BlockPicker picker(job.distribution[0], kBlocks, false, 7);
  std::vector<int> hits(kBlocks);
  for (int i = 0; i < kDraws; i++) {
    uint64_t block = picker.next();
    ck_assert(block < kBlocks);
    hits[block]++;
  }
  std::sort(hits.rbegin(), hits.rend());
  int sum = 0;
  for (size_t i = 0; i < kBlocks / 5; i++)
    sum += hits[i];
  return static_cast<double>(sum) / kDraws;
}

START_TEST(distributions_have_their_shape) {
  ck_assert(top_fifth("random") < 0.25);
  // Pareto with 0.2 is the rule of 80 to 20.
  ck_assert(std::fabs(top_fifth("pareto:0.2") - 0.8) < 0.02);
  // Zipf: the sum of 1/i^1.2 of 200 of 1000.
  double head = 0;
  double all = 0;
  for (int i = 1; i <= 1000; i++) {
    all += std::pow(i, -1.2);
    head = i == 200 ? all : head;
  }
  ck_assert(std::fabs(top_fifth("zipf:1.2") - head / all) < 0.03);
  ck_assert(std::fabs(top_fifth("zoned:90/20:10/80") - 0.9) < 0.02);
}
END_TEST

START_TEST(steady_powers) {
  for (double base : {1e-9, 0.3, 0.99, 1.0, 2.0, 12345.6})
    for (double exponent : {-2.5, -0.3, 0.0, 0.5, 1.1, 7.0}) {
      double want = std::pow(base, exponent);
      ck_assert(std::fabs(steady_pow(base, exponent) - want) <= 1e-11 * want);
    }
}
END_TEST

// What zstd makes of the data, as a share of its size.
static double packed_share(const std::vector<uint8_t> &data) {
  std::vector<uint8_t> packed(ZSTD_compressBound(4096));
  size_t sum = 0;
  for (size_t at = 0; at < data.size(); at += 4096)
    sum += std::min<size_t>(ZSTD_compress(packed.data(), packed.size(), &data[at], 4096, 1), 4096);
  return static_cast<double>(sum) / static_cast<double>(data.size());
}

static double packed_share(const BufferOptions &options, size_t bytes = 1 << 20) {
  DataSource source(options, 4096, 11);
  std::vector<uint8_t> data(bytes);
  source.fill(data);
  return packed_share(data);
}

// C091: 100 is fully compressible, 0 is not, and the share in between is what was asked for.
START_TEST(c091_compress_percentage_direction) {
  BufferOptions options;
  ck_assert(packed_share(options) > 0.99);
  for (int percent : {10, 25, 50, 75, 90}) {
    options.compress_percent = percent;
    options.compress_chunk = 4096;
    double compressible = 1 - packed_share(options);
    ck_assert_msg(std::fabs(compressible - percent / 100.0) < 0.05, "%d: %f", percent,
                  compressible);
  }
  options.compress_percent = 100;
  ck_assert(packed_share(options) < 0.01);
}
END_TEST

START_TEST(buffers_repeat_unless_refilled) {
  auto two = [](BufferOptions options) {
    DataSource source(options, 4096, 3);
    std::vector<uint8_t> first(4096);
    source.fill(first);
    std::vector<uint8_t> second = first;
    source.prepare(second, 8192, 77);
    size_t same = 0;
    for (size_t i = 0; i < first.size(); i++)
      same += first[i] == second[i];
    return same;
  };
  BufferOptions options;
  ck_assert(two(options) > 3900 && two(options) < 4096);  // scrambled
  options.scramble = false;
  ck_assert_uint_eq(two(options), 4096);
  options.refill = true;
  ck_assert(two(options) < 200);
  options.zero = true;
  ck_assert_uint_eq(two(options), 4096);
}
END_TEST

// fio changes the same places of a buffer again and again: what it writes stays as good as random.
START_TEST(scrambled_buffers_do_not_wear) {
  DataSource source({}, 4096, 7);
  std::vector<uint8_t> data(4096);
  source.fill(data);
  std::vector<uint8_t> first = data;
  Random random(test::seed());
  int64_t now_ns = 0;
  for (int use = 0; use < 10000; use++) {
    now_ns += static_cast<int64_t>(random.below(300'000));
    source.prepare(data, random.below(1 << 20) * 4096, now_ns);
  }
  int changed = 0;
  for (size_t i = 0; i < data.size(); i++)
    changed += data[i] != first[i];
  ck_assert(changed > 8 * 40 && changed <= 8 * 80);
  ck_assert_msg(packed_share(data) > 0.9, "compresses to %.3f", packed_share(data));
}
END_TEST

// A job gets what the source has, whether it ends, begins anew before the end, or goes on for ever.
START_TEST(look_ahead_keeps_order) {
  Random random(test::seed());
  rd_card_config config = {};
  config.ports = 1;
  CardHost host(config, 1 << 16);
  Members members{1, 1 << 20, 128 << 10, nullptr};
  auto target = Placement::single(members, 0);
  for (int round = 0; round < 200; round++) {
    JobOptions job;
    job.direction.reads = random.one_in(2);
    job.direction.writes = job.direction.random = true;
    job.direction.trim_then_write = random.one_in(4);
    job.block_max[static_cast<unsigned>(Op::kWrite)] = 4096u << random.below(3);
    std::vector<Region> regions(1 + random.below(3), Region{0, 1 << 20});
    std::vector<Placement *> targets(regions.size(), target.get());
    uint64_t total = random.one_in(3) ? 0 : random.below(100) * 4096 + 1;
    uint64_t seed = random.next();
    Generator plain(job, regions, total, seed);
    LookAhead ahead(std::make_unique<Generator>(job, regions, total, seed), host, targets);
    for (int step = 0; step < 300; step++) {
      NextIo want, got;
      bool more = plain.next(want);
      ck_assert_int_eq(ahead.next(got), more);
      bool same = got.op == want.op && got.target == want.target && got.bytes == want.bytes &&
                  got.offset == want.offset;
      ck_assert_msg(!more || same, "round %d, step %d", round, step);
      if (more && !random.one_in(50))
        continue;
      plain.rewind();
      ahead.rewind();
    }
  }
}
END_TEST

START_TEST(dedupe_repeats_blocks) {
  BufferOptions options;
  options.dedupe_percent = 60;
  DataSource source(options, 4096, 5);
  std::vector<uint8_t> data(4096 * 2000);
  source.fill(data);
  std::map<std::string, int> blocks;
  for (size_t at = 0; at < data.size(); at += 4096)
    blocks[std::string(data.begin() + static_cast<long>(at),
                       data.begin() + static_cast<long>(at) + 4096)]++;
  ck_assert(blocks.size() > 700 && blocks.size() < 900);
}
END_TEST

START_TEST(percentiles_are_close) {
  Random random(test::seed());
  LatencyStats stats;
  std::vector<int64_t> values;
  for (int i = 0; i < 20000; i++) {
    values.push_back(static_cast<int64_t>(random.below(uint64_t{1} << (3 + random.below(30)))));
    stats.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double percent : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    auto index = static_cast<size_t>(std::ceil(percent / 100 * 20000)) - 1;
    auto exact = static_cast<double>(values[index]);
    auto got = static_cast<double>(stats.percentile_ns(percent));
    ck_assert_msg(std::fabs(got - exact) <= exact / 64 + 1, "%f: %f, not %f", percent, got, exact);
  }
  ck_assert(stats.min_ns() == static_cast<uint64_t>(values.front()));
  ck_assert(stats.max_ns() == static_cast<uint64_t>(values.back()));
  LatencyStats twice = stats;
  twice.merge(stats);
  ck_assert(twice.count() == 40000 && twice.percentile_ns(50) == stats.percentile_ns(50));
}
END_TEST

// Sectors of the request as (port, lba of each sector, address of its data).
struct Piece {
  unsigned port;
  uint64_t lba;
  uint64_t addr;
  bool operator==(const Piece &) const = default;
};

static std::vector<Piece> pieces_of(const std::vector<AtaRequest> &commands) {
  std::vector<Piece> pieces;
  for (const AtaRequest &command : commands) {
    const DataLayout &data = command.data;
    for (uint64_t i = 0; i < command.sectors; i++) {
      uint64_t at = i * RD_SECTOR_BYTES;
      uint64_t addr = data.addr + at;
      if (at >= data.first_bytes) {
        uint64_t rest = at - data.first_bytes;
        addr = data.addr + data.first_bytes + data.stride_bytes - data.piece_bytes +
               rest / data.piece_bytes * data.stride_bytes + rest % data.piece_bytes;
      }
      pieces.push_back({command.port, command.lba + i, addr});
    }
  }
  return pieces;
}

// Against the definition of RAID 0, sector by sector.
START_TEST(stripe_is_raid0) {
  Random random(test::seed());
  for (int round = 0; round < 300; round++) {
    uint32_t chunk = 4096u << random.below(5);
    Members members{1 + static_cast<unsigned>(random.below(5)), 8 << 20, 128 << 10, nullptr};
    auto volume = Placement::volume(members, "stripe:" + std::to_string(chunk));
    IoRequest io;
    io.op = random.one_in(2) ? Op::kRead : Op::kWrite;
    io.buffer = 1 << 20;
    io.offset = random.below(volume->bytes() / 1024) * 512;
    io.bytes = static_cast<uint32_t>((1 + random.below(1000)) * 512);
    std::vector<AtaRequest> commands;
    volume->place(io, commands);
    std::vector<Piece> want;
    for (uint64_t at = 0; at < io.bytes; at += RD_SECTOR_BYTES) {
      uint64_t place = io.offset + at;
      uint64_t number = place / chunk;
      want.push_back({static_cast<unsigned>(number % members.count),
                      (number / members.count * chunk + place % chunk) / RD_SECTOR_BYTES,
                      io.buffer + at});
    }
    std::vector<Piece> got = pieces_of(commands);
    auto by_addr = [](const Piece &a, const Piece &b) { return a.addr < b.addr; };
    std::sort(got.begin(), got.end(), by_addr);
    ck_assert(got == want);
    auto sector = volume->sector(io.offset);
    ck_assert(sector && sector->port == got[0].port && sector->lba == got[0].lba);
    for (const AtaRequest &command : commands)
      ck_assert(command.sectors * RD_SECTOR_BYTES <= members.max_command_bytes);
  }
}
END_TEST

// Reads go where the data is; no two sectors of the volume ever share a place.
START_TEST(dispatch_finds_what_it_wrote) {
  Random random(test::seed());
  uint32_t load[RD_MAX_PORTS] = {};
  Members members{3, 256 << 10, 128 << 10, load};
  auto volume = Placement::volume(members, "dispatch:4k");
  std::map<uint64_t, std::pair<unsigned, uint64_t>> places;  // sector of the volume: where it is
  uint64_t sectors = volume->bytes() / RD_SECTOR_BYTES;
  for (int round = 0; round < 3000; round++) {
    for (unsigned port = 0; port < 3; port++)
      load[port] = static_cast<uint32_t>(random.below(10));
    IoRequest io;
    io.op = random.one_in(2) ? Op::kRead : Op::kWrite;
    uint64_t first = random.below(sectors);
    uint64_t count = 1 + random.below(std::min<uint64_t>(sectors - first, 40));
    io.offset = first * RD_SECTOR_BYTES;
    io.bytes = static_cast<uint32_t>(count * RD_SECTOR_BYTES);
    std::vector<AtaRequest> commands;
    volume->place(io, commands);
    for (const Piece &piece : pieces_of(commands)) {
      uint64_t sector = first + piece.addr / RD_SECTOR_BYTES;
      std::pair<unsigned, uint64_t> place(piece.port, piece.lba);
      if (io.op == Op::kWrite)
        places[sector] = place;
      else if (places.contains(sector))
        ck_assert(places[sector] == place);
      ck_assert(piece.lba < members.bytes / RD_SECTOR_BYTES);
    }
  }
  std::map<std::pair<unsigned, uint64_t>, int> used;
  for (const auto &[sector, place] : places)
    ck_assert_int_eq(++used[place], 1);
}
END_TEST

// C081: what a log does not say clearly is an error with its line, never a skip.
START_TEST(c081_log_lines) {
  Trace trace = parse_trace(
      "fio version 2 iolog\nssd0 add\nssd0 open\nssd0 write 0 4096\nssd0 wait 500\n"
      "ssd0 read 0 4096\nssd0 wait 500\nssd0 trim 0 4096\nssd0 sync 0 0\nssd0 close\n",
      "t.log");
  ck_assert_uint_eq(trace.entries.size(), 4);
  ck_assert(trace.entries[1].at_ns == 500000 && trace.entries[2].at_ns == 1000000);
  ck_assert(trace.entries[2].op == Op::kTrim && trace.entries[3].op == Op::kFlush);
  trace =
      parse_trace("fio version 3 iolog\n0 card add\n5 card read 512 512\n9 card datasync\n", "t");
  ck_assert(trace.entries[0].at_ns == 5000 && trace.entries[1].at_ns == 9000);
  for (const char *line : {"ssd0 discard 0 4096", "ssd0 read 0", "ssd0 read x 4096", "ssd0",
                           "ssd0 read 0 100", "ssd0 read 0 0", "ssd0 wait"}) {
    std::string said = complaint(
        [&] { parse_trace("fio version 2 iolog\nssd0 add\n" + std::string(line), "t.log"); });
    ck_assert_msg(names(said, {"t.log:3:"}), "%s: \"%s\"", line, said.c_str());
  }
  ck_assert(names(
      complaint([] { parse_trace("fio version 3 iolog\n5 a read 0 512\n4 a read 0 512", "t"); }),
      {"t:3:", "before"}));
  ck_assert(names(complaint([] { parse_trace("garbage\n", "t"); }), {"t:1:", "version"}));
}
END_TEST

START_TEST(state_files_are_whole_or_refused) {
  SavedState state{"p", 4, 1 << 20, 99, std::vector<uint8_t>(100000, 7)};
  std::string bytes = encode_state(state);
  ck_assert_uint_lt(bytes.size(), 1000);
  SavedState back = decode_state(bytes, "f");
  ck_assert(back.profile == "p" && back.members == 4 && back.now_ns == 99 &&
            back.card == state.card);
  for (size_t at = 0; at < bytes.size(); at++) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 1);
    ck_assert(names(complaint([&] { decode_state(broken, "f"); }), {"--state=f"}));
    ck_assert(!complaint([&] { decode_state(bytes.substr(0, at), "f"); }).empty());
  }
}
END_TEST

int main() {
  return test::run_tests(
      "sim_parts", {numbers, job_files, comments_end_lines, bad_options_name_place_option_and_value,
                    permutation_visits_each_once, distributions_have_their_shape, steady_powers,
                    c091_compress_percentage_direction, buffers_repeat_unless_refilled,
                    scrambled_buffers_do_not_wear, look_ahead_keeps_order, dedupe_repeats_blocks,
                    percentiles_are_close, stripe_is_raid0, dispatch_finds_what_it_wrote,
                    c081_log_lines, state_files_are_whole_or_refused});
}
