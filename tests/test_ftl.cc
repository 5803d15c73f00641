// SPDX-License-Identifier: GPL-2.0-or-later
//
// The books of the flash translation layer: whatever is written, trimmed and collected, they add up
// (C079), garbage collection always finds room, wear is even, failed blocks are replaced.
#include <cmath>
#include <vector>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"
#include "sf2281/ftl.h"

using namespace revodrive;

namespace {

constexpr uint64_t kMiB = 1 << 20;

FlashGeometry geometry_of(const FlashProfile &profile, uint64_t bytes) {
  FlashGeometry geometry;
  rd_error error;
  ck_assert_msg(FlashGeometry::make(profile, bytes / 512, &geometry, &error), "%s", error.text);
  return geometry;
}

// What a controller does with the books, without its time.
struct Books {
  Books(const FlashProfile &profile, uint64_t bytes)
      : ftl(geometry_of(profile, bytes), profile), units(ftl.geometry().units) {}
  explicit Books(uint64_t bytes) : Books(test_flash(), bytes) {}

  void make_room(Ftl::Stream stream) {
    if (ftl.has_room(stream))
      return;
    while (!ftl.open(stream)) {
      ck_assert_int_eq(stream, Ftl::kHost);
      ck_assert_uint_ne(ftl.victim(), 0);
      collect();
    }
  }
  void collect() {
    uint32_t unit;
    while (ftl.next_of_victim(&unit)) {
      uint32_t bytes = ftl.find(unit).bytes;
      make_room(Ftl::kGc);
      ftl.append(Ftl::kGc, unit, bytes);
      moved += bytes;
    }
  }
  void write(uint32_t unit, uint32_t bytes = 4096) {
    make_room(Ftl::kHost);
    Ftl::Place place = ftl.append(Ftl::kHost, unit, ftl.rounded(bytes));
    written += place.bytes;
    ck_assert_uint_gt(ftl.free_superblocks(), 0);
    while (ftl.wanted() && ftl.victim() != 0)
      collect();
  }
  void fill() {
    for (uint32_t unit = 0; unit < units; unit++)
      write(unit);
  }
  double amplification() const {
    return static_cast<double>(written + moved) / static_cast<double>(written);
  }
  void check(const char *when) const {
    const char *problem = ftl.check();
    ck_assert_msg(!problem, "%s: %s", when, problem);
  }

  Ftl ftl;
  uint64_t units;
  uint64_t written = 0, moved = 0;
};

std::vector<uint8_t> saved(const Ftl &ftl) {
  StreamWriter out;
  ck_assert(ftl.save(out, SIZE_MAX));
  return out.bytes();
}

}  // namespace

// C079: ten times a 256 MiB drive of writes of all sizes, trims and erasures.
START_TEST(c079_books_add_up) {
  Random random(test::seed());
  FlashProfile profile = test_flash();
  profile.journal_permille = 20;
  profile.raise = 1;
  profile.raw_permille = 1300;
  profile.wear_delta = 5;
  for (uint32_t cost_benefit : {0, 1}) {
    profile.gc_cost_benefit = cost_benefit;
    Books books(profile, 256 * kMiB);
    std::vector<uint32_t> sizes(books.units);  // by a second bookkeeper
    uint64_t mapped = 0;
    for (unsigned i = 0; i < 10 * books.units; i++) {
      auto unit = static_cast<uint32_t>(random.one_in(2) ? random.below(books.units)
                                                         : random.below(books.units / 16));
      if (random.one_in(50)) {
        uint64_t count = 1 + random.below(2000);
        books.ftl.trim(unit, count);
        for (uint64_t j = unit; j < std::min(unit + count, books.units); j++) {
          mapped -= sizes[j] != 0;
          sizes[j] = 0;
        }
        continue;
      }
      auto bytes = static_cast<uint32_t>(random.one_in(3) ? 4096 : 1 + random.below(4096));
      books.write(unit, bytes);
      mapped += sizes[unit] == 0;
      sizes[unit] = (bytes + 15) / 16 * 16;
      if (i % 20000 == 0)
        books.check("on the way");
    }
    books.check("at the end");
    ck_assert_uint_eq(books.ftl.mapped_units(), mapped);
    for (uint32_t unit = 0; unit < books.units; unit++)
      ck_assert_uint_eq(books.ftl.find(unit).bytes, sizes[unit]);
    books.ftl.erase_all();
    books.check("after an erasure");
    ck_assert_uint_eq(books.ftl.mapped_units(), 0);
  }
}
END_TEST

// A small hot span, very compressible: the logs hold the same units again and again.
START_TEST(logs_stay_bounded) {
  Books books(1024 * kMiB);
  for (uint32_t i = 0; i < 4'000'000; i++)
    books.write(i % 512, 576);
  books.check("after");
  ck_assert_uint_eq(books.ftl.mapped_units(), 512);
  // 65536 entries of slack, and a superblock's worth.
  ck_assert_uint_lt(books.ftl.memory_bytes(), 4 * kMiB);
}
END_TEST

// Uniform random writes and greedy choice: what Desnoyers 2012 ("Analytic modeling of SSD write
// performance") gives for `share` times as much flash for data as there is data. With large
// superblocks that is A = a / (a + x), where x is the root of x e^x = -a e^-a between -1 and 0.
double analytic_amplification(double share) {
  double low = -1, high = 0;
  for (int i = 0; i < 60; i++) {
    double x = (low + high) / 2;
    (x * std::exp(x) < -share * std::exp(-share) ? low : high) = x;
  }
  return share / (share + low);
}

// Parity and journal take most of what a drive of 12.7 % reserve has to spare: 4.3 becomes 10.
START_TEST(write_amplification_of_random_writes) {
  struct Case {
    uint32_t raw, raise, journal;
  };
  Random random(test::seed());
  for (Case c : {Case{1145, 0, 0}, {1300, 0, 0}, {1145, 1, 0}, {1145, 1, 10}}) {
    FlashProfile profile = test_flash();
    profile.raw_permille = c.raw;
    profile.raise = c.raise;
    profile.journal_permille = c.journal;
    Books books(profile, 512 * kMiB);
    books.fill();
    for (uint64_t i = 0; i < 2 * books.units; i++)
      books.write(static_cast<uint32_t>(random.below(books.units)));
    books.written = books.moved = 0;
    for (uint64_t i = 0; i < 2 * books.units; i++)
      books.write(static_cast<uint32_t>(random.below(books.units)));
    // What is kept free holds no data, nor does half of each open superblock; at the end of each a
    // page of the journal may find no room.
    const FlashGeometry &g = books.ftl.geometry();
    double used = g.superblocks - books.ftl.free_superblocks() - 1.0;
    double room = static_cast<double>(g.data_bytes) - (c.journal > 0 ? g.page_bytes : 0);
    double bytes = used * room * 1000 / (1000 + c.journal);
    double least = static_cast<double>(books.units * g.unit_bytes);
    double expected = analytic_amplification(bytes / least);
    double got = books.amplification();
    ck_assert_msg(std::abs(got / expected - 1) < 0.08,
                  "raw %u, raise %u, journal %u: %.2f, not %.2f", c.raw, c.raise, c.journal, got,
                  expected);
    books.check("after random writes");
  }
}
END_TEST

START_TEST(sequential_overwrites_move_nothing) {
  Books books(512 * kMiB);
  for (int i = 0; i < 4; i++)
    books.fill();
  ck_assert_uint_lt(books.moved, books.written / 50);
}
END_TEST

START_TEST(trim_frees_superblocks) {
  Books books(512 * kMiB);
  books.fill();
  uint32_t before = books.ftl.free_superblocks();
  books.ftl.trim(0, books.units / 2);
  books.check("after trim");
  ck_assert_uint_gt(books.ftl.free_superblocks(), before + books.ftl.geometry().superblocks / 3);
  ck_assert_uint_eq(books.ftl.find(0).bytes, 0);
  ck_assert_uint_eq(books.ftl.mapped_units(), books.units - books.units / 2);
  books.ftl.trim(0, UINT32_MAX);
  ck_assert_uint_eq(books.ftl.mapped_units(), 0);
}
END_TEST

// A drive half full of data that never changes: its blocks take part all the same.
START_TEST(wear_is_levelled) {
  Random random(test::seed());
  for (uint32_t delta : {0u, 4u}) {
    FlashProfile profile = test_flash();
    profile.wear_delta = delta;
    Books books(profile, 64 * kMiB);
    books.fill();
    for (uint64_t i = 0; i < 60 * books.units; i++)
      books.write(static_cast<uint32_t>(random.below(books.units / 4)));
    Ftl::Wear wear = books.ftl.wear();
    uint32_t range = wear.most - wear.least;
    if (delta == 0)
      ck_assert_uint_gt(range, 20);
    else
      ck_assert_msg(range < 20, "%u to %u", wear.least, wear.most);
    books.check("after");
  }
}
END_TEST

// Beyond its rating blocks fail more and more often; spares replace them, then superblocks go.
START_TEST(worn_blocks_retire) {
  Random random(test::seed());
  FlashProfile profile = test_flash();
  profile.raw_permille = 1500;
  profile.endurance_cycles = 20;
  profile.block_fail_ppb = 20'000;
  profile.spare_blocks_permille = 5;
  Books books(profile, 64 * kMiB);
  uint64_t before = 0;
  for (int round = 0; round < 40; round++) {
    for (uint64_t i = 0; i < 2 * books.units; i++)
      books.write(static_cast<uint32_t>(random.below(books.units)));
    books.check("while wearing out");
    ck_assert_uint_ge(books.ftl.retired_blocks(), before);
    before = books.ftl.retired_blocks();
  }
  const Ftl::Counts &counts = books.ftl.counts();
  ck_assert_uint_gt(before, books.ftl.spare_blocks());
  ck_assert_uint_eq(before, counts.program_fails + counts.erase_fails);
  ck_assert_uint_gt(counts.program_fails, 0);
  ck_assert_uint_gt(counts.erase_fails, 0);
}
END_TEST

// A drive that cannot do without its last superblocks goes on with them, and counts no block twice.
START_TEST(no_more_retire_than_there_are) {
  Random random(test::seed());
  FlashProfile profile = test_flash();
  profile.raw_permille = 1500;
  profile.block_fail_ppb = 1'000'000'000;
  profile.spare_blocks_permille = 5;
  Books books(profile, 16 * kMiB);
  uint64_t blocks = books.ftl.geometry().block_count() + books.ftl.spare_blocks();
  uint64_t rounds = 0;
  while (books.ftl.counts().erases * books.ftl.geometry().dies * books.ftl.geometry().planes <
         4 * blocks) {
    for (uint64_t i = 0; i < books.units; i++)
      books.write(static_cast<uint32_t>(random.below(books.units)));
    ck_assert_uint_lt(++rounds, 10000);
  }
  books.check("at the end of its life");
  ck_assert_uint_gt(books.ftl.retired_blocks(), books.ftl.spare_blocks());
  ck_assert_uint_le(books.ftl.retired_blocks(), blocks);
}
END_TEST

START_TEST(presets_hold_every_unit) {
  for (auto fill : {Ftl::Fill::kSequential, Ftl::Fill::kShuffled}) {
    FlashProfile profile = test_flash();
    profile.journal_permille = 10;
    Books books(profile, 700 * kMiB + 512);
    books.ftl.preset(fill, 4096, 7);
    books.check("preset");
    ck_assert_uint_eq(books.ftl.mapped_units(), books.units);
    for (uint32_t unit = 0; unit < books.units; unit++)
      ck_assert_uint_eq(books.ftl.find(unit).bytes, 4096);
  }
}
END_TEST

// What was dealt and not looked at yet is moved, trimmed, saved and summed up like what was
// written.
START_TEST(dealt_drives_are_like_loaded_ones) {
  for (auto fill : {Ftl::Fill::kSequential, Ftl::Fill::kShuffled}) {
    Random random(test::seed());
    FlashProfile profile = test_flash();
    profile.journal_permille = 13;
    Books dealt(profile, 512 * kMiB), loaded(profile, 512 * kMiB);
    dealt.ftl.preset(fill, 4096, 7);
    Books copy(profile, 512 * kMiB);
    copy.ftl.preset(fill, 4096, 7);
    std::vector<uint8_t> bytes = saved(copy.ftl);
    StreamReader in(bytes);
    loaded.ftl.load(in);
    ck_assert(in.ok());
    for (int i = 0; i < 60'000; i++) {
      auto unit = static_cast<uint32_t>(random.below(dealt.units));
      uint64_t count = random.one_in(100) ? random.below(300) : 0;
      uint32_t size = 4096 - static_cast<uint32_t>(random.below(512));
      for (Books *books : {&dealt, &loaded}) {
        if (count > 0)
          books->ftl.trim(unit, count);
        else
          books->write(unit, size);
      }
    }
    ck_assert_uint_gt(dealt.moved, 0);
    ck_assert_uint_eq(dealt.moved, loaded.moved);
    ck_assert(saved(dealt.ftl) == saved(loaded.ftl));
    StreamWriter one, other;
    dealt.ftl.save_summary(one);
    loaded.ftl.save_summary(other);
    ck_assert(one.bytes() == other.bytes());
    dealt.check("dealt");
    loaded.check("loaded");
  }
}
END_TEST

// A steady preset behaves like a drive that was written at random for long.
START_TEST(steady_preset_is_steady) {
  Random random(test::seed());
  double got[2];
  for (bool preset : {true, false}) {
    Books books(1024 * kMiB);
    if (preset) {
      books.ftl.preset(Ftl::Fill::kShuffled, 4096, 3);
    } else {
      books.fill();
      for (uint64_t i = 0; i < 4 * books.units; i++)
        books.write(static_cast<uint32_t>(random.below(books.units)));
    }
    books.written = books.moved = 0;
    for (uint64_t i = 0; i < books.units / 2; i++)
      books.write(static_cast<uint32_t>(random.below(books.units)));
    got[preset] = books.amplification();
  }
  ck_assert_msg(got[1] > 0.75 * got[0] && got[1] < 1.25 * got[0], "preset %.2f, aged %.2f", got[1],
                got[0]);
}
END_TEST

// What is saved and loaded goes on as if nothing had happened, wherever it was.
START_TEST(saved_books_go_on) {
  Random random(test::seed());
  FlashProfile profile = test_flash();
  profile.journal_permille = 13;
  profile.block_fail_ppb = 100'000;
  profile.wear_delta = 3;
  for (int round = 0; round < 6; round++) {
    Books books(profile, 64 * kMiB), copy(profile, 64 * kMiB);
    uint64_t steps = random.below(6 * books.units);
    for (uint64_t i = 0; i < steps; i++) {
      if (random.one_in(500))
        books.ftl.trim(random.below(books.units), random.below(300));
      books.write(static_cast<uint32_t>(random.below(books.units)),
                  static_cast<uint32_t>(1 + random.below(4096)));
    }
    std::vector<uint8_t> bytes = saved(books.ftl);
    StreamReader in(bytes);
    copy.ftl.load(in);
    ck_assert(in.ok() && in.at_end());
    copy.check("loaded");
    ck_assert(saved(copy.ftl) == bytes);
    for (uint64_t i = 0; i < 2 * books.units; i++) {
      auto unit = static_cast<uint32_t>(random.below(books.units));
      auto size = static_cast<uint32_t>(1 + random.below(4096));
      books.write(unit, size);
      copy.write(unit, size);
    }
    ck_assert(saved(copy.ftl) == saved(books.ftl));
  }
}
END_TEST

// Sequential data takes few bytes to save, whatever it compresses to.
START_TEST(runs_are_compact) {
  for (uint32_t size : {4096u, 576u}) {
    FlashProfile profile = test_flash();
    profile.journal_permille = 10;
    Books books(profile, 1024 * kMiB);
    for (uint32_t unit = 0; unit < books.units; unit++)
      books.write(unit, size);
    ck_assert_uint_lt(saved(books.ftl).size(), 64 * 1024);
  }
}
END_TEST

START_TEST(summary_keeps_what_counts) {
  Random random(test::seed());
  Books books(512 * kMiB), copy(512 * kMiB);
  for (uint64_t i = 0; i < 3 * books.units; i++)
    books.write(static_cast<uint32_t>(random.below(books.units / 2)));
  StreamWriter none;
  ck_assert(!books.ftl.save(none, 4096));
  StreamWriter out;
  books.ftl.save_summary(out);
  ck_assert_uint_lt(out.bytes().size(), 32 * 1024);
  StreamReader in(out.bytes());
  copy.ftl.load_summary(in);
  ck_assert(in.ok() && in.at_end());
  copy.check("from a summary");
  ck_assert_uint_eq(copy.ftl.mapped_units(), books.ftl.mapped_units());
  ck_assert_uint_eq(copy.ftl.wear().most, books.ftl.wear().most);
  ck_assert_uint_eq(copy.ftl.wear().mean, books.ftl.wear().mean);
  // Only the half that was written is mapped.
  for (uint32_t unit = static_cast<uint32_t>(books.units / 2) + UnitMap::kChunkUnits;
       unit < books.units; unit++)
    ck_assert_uint_eq(copy.ftl.find(unit).bytes, 0);
  for (uint64_t i = 0; i < books.units; i++)
    copy.write(static_cast<uint32_t>(random.below(books.units)));
  copy.check("after more writes");
}
END_TEST

START_TEST(damaged_streams_are_refused) {
  Random random(test::seed());
  Books books(16 * kMiB);
  for (uint64_t i = 0; i < 3 * books.units; i++)
    books.write(static_cast<uint32_t>(random.below(books.units)),
                static_cast<uint32_t>(1 + random.below(4096)));
  std::vector<uint8_t> good = saved(books.ftl);
  for (int i = 0; i < 3000; i++) {
    std::vector<uint8_t> bad = good;
    if (random.one_in(4))
      bad.resize(random.below(bad.size()));
    else
      bad[random.below(bad.size())] ^= static_cast<uint8_t>(1 + random.below(255));
    Books copy(16 * kMiB);
    StreamReader in(bad);
    copy.ftl.load(in);
    copy.check(in.ok() ? "another state, but a sound one" : "refused, and empty");
  }
}
END_TEST

// Geometry follows the drive's size, and says why when it cannot.
START_TEST(geometry_of_all_sizes) {
  FlashProfile profile = test_flash();
  profile.raise = 1;
  profile.journal_permille = 10;
  for (uint64_t bytes : {uint64_t{32} << 10, kMiB, 8 * kMiB, 100 * kMiB + 512, 1024 * kMiB,
                         uint64_t{120'034'123'776}, uint64_t{1} << 40, uint64_t{1} << 50,
                         (uint64_t{1} << 57) - 512}) {
    FlashGeometry geometry = geometry_of(profile, bytes);
    ck_assert_uint_ge(geometry.units * geometry.unit_bytes, bytes);
    ck_assert_uint_ge((geometry.superblocks - FlashGeometry::kSpare) * geometry.data_bytes, bytes);
    ck_assert_uint_le(geometry.superblocks, 16384 + FlashGeometry::kSpare);
    if (bytes >= 1024 * kMiB)  // the ratio stays
      ck_assert_double_eq_tol(double(geometry.raw_bytes()) / double(bytes), 1.145, 0.003);
  }
  ck_assert_uint_eq(geometry_of(profile, 120'034'123'776).superblocks, 2048);
}
END_TEST

START_TEST(geometry_that_cannot_be) {
  auto message = [](const FlashProfile &profile, uint64_t bytes) {
    FlashGeometry geometry;
    rd_error error;
    ck_assert(!FlashGeometry::make(profile, bytes / 512, &geometry, &error));
    return std::string(error.text);
  };
  FlashProfile profile = test_flash();
  profile.raise = 1;
  profile.raw_permille = 1080;
  std::string text = message(profile, 1024 * kMiB);
  ck_assert_msg(text.find("raw_permille=1080") != std::string::npos &&
                    text.find("15 of 16 dies") != std::string::npos &&
                    text.find("1012 bytes") != std::string::npos,
                "%s", text.c_str());
  profile = test_flash();
  profile.blocks_per_plane = 16;  // 64 MiB each
  text = message(profile, 16384 * kMiB);
  ck_assert_msg(text.find("blocks_per_plane=16: 16 superblocks of 67104768 bytes hold 1073676288 "
                          "bytes") != std::string::npos,
                "%s", text.c_str());
  profile = test_flash();
  profile.map_unit_bytes = 5000;
  ck_assert_ptr_nonnull(strstr(message(profile, kMiB).c_str(), "powers of two"));
  profile = test_flash();
  profile.channels = profile.dies_per_channel = profile.raise = 1;
  ck_assert_ptr_nonnull(strstr(message(profile, kMiB).c_str(), "at least 2"));
}
END_TEST

// The arithmetic of a card that is fully written: four members, 1.5 GiB.
START_TEST(memory_of_a_full_card) {
  FlashProfile profile = test_flash();
  uint64_t bytes = 4096 * kMiB;
  Books books(profile, bytes);
  ck_assert_uint_lt(books.ftl.memory_bytes(), kMiB);
  // A preset takes memory for what is used of it; in order, for what is written of it.
  Books read(profile, bytes);
  read.ftl.preset(Ftl::Fill::kSequential, 4096, 1);
  uint64_t before = read.ftl.memory_bytes();
  for (uint32_t unit = 0; unit < read.units; unit += 7)
    ck_assert_uint_eq(read.ftl.find(unit).bytes, 4096);
  ck_assert_uint_eq(read.ftl.memory_bytes(), before);
  read.write(static_cast<uint32_t>(read.units / 2));
  ck_assert_uint_gt(read.ftl.memory_bytes(), before);
  books.ftl.preset(Ftl::Fill::kShuffled, 4096, 1);
  ck_assert_uint_lt(books.ftl.memory_bytes(), 2 * kMiB);
  // Written once, and again here and there, so that the logs are as long as they get.
  Books written(profile, bytes);
  written.fill();
  Random random(test::seed());
  for (uint64_t i = 0; i < written.units / 2; i++)
    written.write(static_cast<uint32_t>(random.below(written.units)), 560);
  uint64_t full = written.ftl.memory_bytes();
  ck_assert_uint_gt(full, written.units * 5);
  ck_assert_uint_lt(full * (480'136'495'104 / kMiB) / (bytes / kMiB), uint64_t{1536} * kMiB);
}
END_TEST

int main() {
  return test::run_tests(
      "ftl", {c079_books_add_up, logs_stay_bounded, write_amplification_of_random_writes,
              sequential_overwrites_move_nothing, trim_frees_superblocks, wear_is_levelled,
              worn_blocks_retire, no_more_retire_than_there_are, presets_hold_every_unit,
              dealt_drives_are_like_loaded_ones, steady_preset_is_steady, saved_books_go_on,
              runs_are_compact, summary_keeps_what_counts, damaged_streams_are_refused,
              geometry_of_all_sizes, geometry_that_cannot_be, memory_of_a_full_card});
}
