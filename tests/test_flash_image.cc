// SPDX-License-Identifier: GPL-2.0-or-later
//
// A drive that begins with what its image holds: exactly those units are mapped, as if they had
// been written in order of address, and whatever comes after goes on from there.
#include <algorithm>
#include <map>
#include <vector>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"
#include "sf2281/ftl.h"
#include "sf2281/written.h"

using namespace revodrive;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kUnit = 4096;
constexpr uint64_t kDriveBytes = 512 * kMiB + 2 * 512;  // more than one chunk; ends inside a unit
constexpr uint64_t kUnits = kDriveBytes / kUnit + 1;

using Extents = std::vector<rd_extent>;

FlashProfile profile() {
  FlashProfile profile = test_flash();
  profile.journal_permille = 13;
  return profile;
}

FlashGeometry geometry() {
  FlashGeometry geometry;
  rd_error error;
  ck_assert_msg(FlashGeometry::make(profile(), kDriveBytes / 512, &geometry, &error), "%s",
                error.text);
  ck_assert_uint_eq(geometry.units, kUnits);
  return geometry;
}

// Of a size that differs from image to image; some lie in each other, some beyond the drive.
Extents random_extents(Random &random) {
  Extents extents(1 + random.below(random.one_in(2) ? 8 : 3000));
  uint64_t most = uint64_t{512} << random.below(random.one_in(2) ? 8 : 16);
  for (rd_extent &extent : extents)
    extent = {random.below(kDriveBytes + kMiB), random.below(most)};
  if (random.one_in(3))
    extents.push_back({kDriveBytes - 1, 1});
  if (random.one_in(3))
    extents.push_back({kDriveBytes - random.below(3 * kMiB), UINT64_MAX});
  if (random.one_in(3))
    extents.push_back({UINT64_MAX - random.below(100), UINT64_MAX});
  return extents;
}

// By someone who knows no ranges.
std::vector<bool> naive(const Extents &extents) {
  std::vector<bool> held(kUnits);
  for (const rd_extent &extent : extents) {
    for (uint64_t at = extent.offset, left = extent.bytes; left > 0 && at < kDriveBytes;) {
      held[at / kUnit] = true;
      uint64_t step = std::min(left, kUnit - at % kUnit);
      at += step;
      left -= step;
    }
  }
  return held;
}

uint64_t count(const std::vector<bool> &held) {
  return static_cast<uint64_t>(std::count(held.begin(), held.end(), true));
}

void check(const Ftl &ftl, const char *when) {
  const char *problem = ftl.check();
  ck_assert_msg(!problem, "%s: %s", when, problem);
}

void make_room(Ftl &ftl, Ftl::Stream stream) {
  if (ftl.has_room(stream))
    return;
  while (!ftl.open(stream)) {
    ck_assert_uint_ne(ftl.victim(), 0);
    for (uint32_t unit; ftl.next_of_victim(&unit);) {
      uint32_t bytes = ftl.find(unit).bytes;
      make_room(ftl, Ftl::kGc);
      ftl.append(Ftl::kGc, unit, bytes);
    }
  }
}

void write(Ftl &ftl, uint32_t unit, uint32_t bytes = kUnit) {
  make_room(ftl, Ftl::kHost);
  ftl.append(Ftl::kHost, unit, ftl.rounded(bytes));
}

void fill(Ftl &ftl, const Extents &extents) {
  ftl.preset_written(written_units(extents, kDriveBytes, kUnit), kUnit);
}

std::vector<uint8_t> saved(const Ftl &ftl) {
  StreamWriter out;
  ck_assert(ftl.save(out, SIZE_MAX));
  return out.bytes();
}

std::map<std::string, uint64_t> counters(const FlashController &flash) {
  std::map<std::string, uint64_t> values;
  flash.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
  return values;
}

}  // namespace

START_TEST(ranges_are_what_the_extents_hold) {
  Random random(test::seed());
  for (int round = 0; round < 60; round++) {
    Extents extents = random_extents(random);
    std::vector<bool> held(kUnits), want = naive(extents);
    uint64_t free = 0;  // the first unit that the next range may have
    for (const UnitRange &range : written_units(extents, kDriveBytes, kUnit)) {
      ck_assert_uint_gt(range.count, 0);
      ck_assert_uint_ge(range.first, free);
      ck_assert_uint_le(uint64_t{range.first} + range.count, kUnits);
      std::fill_n(held.begin() + range.first, range.count, true);
      free = uint64_t{range.first} + range.count + 1;
    }
    ck_assert(held == want);
  }
  ck_assert(written_units({}, kDriveBytes, kUnit).empty());
}
END_TEST

// The units of the image are mapped and no other, each where writes in order would have put it.
START_TEST(image_is_mapped_as_if_written_in_order) {
  Random random(test::seed());
  for (int round = 0; round < 8; round++) {
    Extents extents = random_extents(random);
    std::vector<bool> held = naive(extents);
    Ftl dealt(geometry(), profile()), done(geometry(), profile());
    fill(dealt, extents);
    check(dealt, "filled");
    ck_assert_uint_eq(dealt.mapped_units(), count(held));
    for (uint32_t unit = 0; unit < kUnits; unit++) {
      if (held[unit])
        write(done, unit);
    }
    done.pad(Ftl::kHost);
    for (uint32_t unit = 0; unit < kUnits; unit++) {
      Ftl::Place place = dealt.find(unit), want = done.find(unit);
      ck_assert_uint_eq(place.bytes, held[unit] ? kUnit : 0);
      ck_assert_uint_eq(place.superblock, want.superblock);
      ck_assert_uint_eq(place.offset, want.offset);
    }
    ck_assert_uint_eq(dealt.free_superblocks(), done.free_superblocks());
    ck_assert_uint_eq(dealt.fill_bytes(Ftl::kHost), done.fill_bytes(Ftl::kHost));
  }
}
END_TEST

START_TEST(whole_and_empty_images_are_full_and_fresh) {
  Ftl full(geometry(), profile()), image(geometry(), profile());
  full.preset(Ftl::Fill::kSequential, kUnit, 1);
  fill(image, {{kUnit, UINT64_MAX}, {0, kUnit}});
  ck_assert(saved(image) == saved(full));
  Ftl fresh(geometry(), profile()), empty(geometry(), profile());
  fill(empty, {{kDriveBytes, kMiB}, {5 * kMiB, 0}});
  ck_assert(saved(empty) == saved(fresh));
}
END_TEST

// What was dealt and not looked at yet is moved, trimmed, saved and summed up like what was
// written.
START_TEST(work_goes_on_from_there) {
  Random random(test::seed());
  for (int round = 0; round < 4; round++) {
    Extents extents = random_extents(random);
    Ftl dealt(geometry(), profile()), loaded(geometry(), profile()), copy(geometry(), profile());
    fill(dealt, extents);
    fill(copy, extents);
    std::vector<uint8_t> bytes = saved(copy);
    StreamReader in(bytes);
    loaded.load(in);
    ck_assert(in.ok() && in.at_end());
    std::vector<bool> held = naive(extents);
    for (int i = 0; i < 100'000; i++) {
      auto unit = static_cast<uint32_t>(random.below(kUnits));
      uint64_t trimmed = random.one_in(100) ? random.below(300) : 0;
      uint32_t size = kUnit - static_cast<uint32_t>(random.below(512));
      for (Ftl *ftl : {&dealt, &loaded}) {
        if (trimmed > 0)
          ftl->trim(unit, trimmed);
        else
          write(*ftl, unit, size);
      }
      if (trimmed == 0)
        held[unit] = true;
      for (uint64_t j = unit; j < std::min(unit + trimmed, kUnits); j++)
        held[j] = false;
    }
    check(dealt, "after work");
    for (uint32_t unit = 0; unit < kUnits; unit++)
      ck_assert_int_eq(dealt.find(unit).bytes > 0, held[unit]);
    ck_assert(saved(dealt) == saved(loaded));
    StreamWriter one, other;
    dealt.save_summary(one);
    loaded.save_summary(other);
    ck_assert(one.bytes() == other.bytes());
  }
}
END_TEST

// Reads of holes touch no flash; those of data do, also next to a hole.
START_TEST(holes_touch_no_flash) {
  Random random(test::seed());
  Extents extents = random_extents(random);
  std::vector<bool> held = naive(extents);
  FlashController flash(profile(), kDriveBytes / 512, true);
  flash.renew(FlashPreset::kImage, 1, extents);
  ck_assert_uint_eq(counters(flash)["mapped_units"], count(held));
  int64_t now_ns = 0;
  uint64_t unmapped = 0;
  for (int i = 0; i < 3000; i++) {
    uint64_t unit = random.below(kUnits - 1);
    if (random.one_in(2) && !extents.empty())
      unit = std::min(extents[random.below(extents.size())].offset / kUnit, kUnits - 2);
    uint64_t pages = counters(flash)["nand_read_bytes"];
    Journey journey;
    now_ns += 1'000'000;
    journey.start(now_ns);
    flash.read(flash.command(now_ns, journey), unit * kUnit / 512, 8, journey);
    unmapped += !held[unit];
    ck_assert_uint_eq(counters(flash)["unmapped_reads"], unmapped);
    ck_assert_int_eq(counters(flash)["nand_read_bytes"] > pages, held[unit]);
  }
  ck_assert_uint_gt(unmapped, 0);
  ck_assert_ptr_null(flash.check_books());
}
END_TEST

// A snapshot has exactly the same units; what is stored has as many, whichever way.
START_TEST(states_keep_the_units) {
  Random random(test::seed());
  Extents extents = random_extents(random);
  uint64_t mapped = count(naive(extents));
  FlashController flash(profile(), kDriveBytes / 512, true),
      copy(profile(), kDriveBytes / 512, true);
  flash.renew(FlashPreset::kImage, 1, extents);
  StreamWriter out;
  flash.save(out);
  StreamReader in(out.bytes());
  copy.load(in);
  ck_assert(in.ok() && in.at_end());
  ck_assert_uint_eq(counters(copy)["mapped_units"], mapped);
  StreamWriter again;
  copy.save(again);
  ck_assert(again.bytes() == out.bytes());
  for (size_t most : {SIZE_MAX, size_t{100}}) {
    StreamWriter stored;
    ck_assert(flash.save_persistent(stored, most) == (most == 100));
    StreamReader back(stored.bytes());
    FlashController later(profile(), kDriveBytes / 512, true);
    later.load_persistent(back);
    ck_assert(back.ok() && back.at_end());
    ck_assert_uint_eq(counters(later)["mapped_units"], mapped);
    ck_assert_ptr_null(later.check_books());
  }
}
END_TEST

int main() {
  return test::run_tests("flash_image",
                         {ranges_are_what_the_extents_hold, image_is_mapped_as_if_written_in_order,
                          whole_and_empty_images_are_full_and_fresh, work_goes_on_from_there,
                          holes_touch_no_flash, states_keep_the_units});
}
