// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/geometry.h"

#include <algorithm>
#include <bit>

#include "revodrive/error.h"

namespace revodrive {

namespace {

constexpr uint32_t kFewSuperblocks = 512;
constexpr uint32_t kMostSuperblocks = 16384;
// Addresses and unit numbers have 31 bits.
constexpr uint32_t kAddressBits = 31;
constexpr uint64_t kMostUnits = uint64_t{1} << kAddressBits;
// Units that a superblock holds at least: what is left at its end is lost.
constexpr uint64_t kLeastUnits = 32;
// The least by which flash for data exceeds the drive: below, collecting garbage takes for ever.
constexpr uint64_t kLeastSparePermille = 20;

using ull = unsigned long long;

uint64_t ceil_div(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

bool check_shapes(const FlashProfile &profile, rd_error *error) {
  if (!std::has_single_bit(profile.map_unit_bytes) || !std::has_single_bit(profile.page_bytes)) {
    set_error(error, "[flash] page_bytes=%u, map_unit_bytes=%u: must be powers of two",
              profile.page_bytes, profile.map_unit_bytes);
    return false;
  }
  uint32_t dies = profile.channels * profile.dies_per_channel;
  if (profile.raise && dies < 2) {
    set_error(error, "[flash] raise=1 with %u die: parity needs a die of its own, so at least 2",
              dies);
    return false;
  }
  return true;
}

// The journal writes whole pages: of what it owes, one superblock may have to take a page more.
uint64_t lost_bytes(const FlashGeometry &g) {
  uint64_t journal_page = g.room_bytes - g.unit_bytes;
  return g.room_bytes + journal_page;
}

uint64_t least_data_bytes(const FlashGeometry &g) {
  return kLeastUnits * g.unit_bytes + lost_bytes(g);
}

// What a superblock surely holds of data: without what the journal writes on top and the rest at
// its end, where the next append has no room.
uint64_t net_bytes(const FlashGeometry &g, const FlashProfile &profile) {
  return (g.data_bytes - lost_bytes(g)) * 1000 / (1000 + profile.journal_permille);
}

bool check_ratio(const FlashGeometry &g, const FlashProfile &profile, rd_error *error) {
  uint64_t net = uint64_t{profile.raw_permille} * 1000 * g.data_dies /
                 (uint64_t{g.dies} * (1000 + profile.journal_permille));
  if (net >= 1000 + kLeastSparePermille)
    return true;
  set_error(error,
            "[flash] raw_permille=%u: with %u of %u dies for data and journal_permille=%u that is "
            "%llu bytes of flash for 1000 of the drive, and %llu are the least; raise raw_permille",
            profile.raw_permille, g.data_dies, g.dies, profile.journal_permille, ull(net),
            ull(1000 + kLeastSparePermille));
  return false;
}

void set_block_pages(FlashGeometry *g, uint32_t pages) {
  g->block_pages = pages;
  g->data_bytes = uint64_t{g->data_dies} * g->group_bytes * pages;
}

uint64_t ratio_superblocks(const FlashGeometry &g, const FlashProfile &profile, uint64_t bytes) {
  // Apart, so that no size overflows.
  uint64_t raw = bytes / 1000 * profile.raw_permille + bytes % 1000 * profile.raw_permille / 1000;
  uint64_t superblock = uint64_t{g.dies} * g.group_bytes * g.block_pages;
  return (raw + superblock / 2) / superblock;
}

bool fit_blocks(FlashGeometry *g, const FlashProfile &profile, uint64_t bytes, rd_error *error) {
  set_block_pages(g, profile.block_pages);
  uint64_t count = profile.blocks_per_plane;
  if (count == 0) {
    while (g->block_pages > 1 && ratio_superblocks(*g, profile, bytes) < kFewSuperblocks)
      set_block_pages(g, g->block_pages / 2);
    while (g->data_bytes < least_data_bytes(*g))
      set_block_pages(g, g->block_pages * 2);
    while (ratio_superblocks(*g, profile, bytes) > kMostSuperblocks)
      set_block_pages(g, g->block_pages * 2);
    count = ratio_superblocks(*g, profile, bytes);
  }
  if (g->data_bytes < least_data_bytes(*g)) {
    set_error(error,
              "[flash] blocks of %u pages: a superblock holds %llu bytes, and %llu are the least",
              g->block_pages, ull(g->data_bytes), ull(least_data_bytes(*g)));
    return false;
  }
  uint64_t need = ceil_div(bytes, net_bytes(*g, profile)) + FlashGeometry::kSpare;
  if (profile.blocks_per_plane != 0 && count < need) {
    set_error(error,
              "[flash] blocks_per_plane=%u: %llu superblocks of %llu bytes hold %llu bytes, and a "
              "drive of %llu bytes needs %llu (%llu for data, %u spare)",
              profile.blocks_per_plane, ull(count), ull(net_bytes(*g, profile)),
              ull(count * net_bytes(*g, profile)), ull(bytes), ull(need),
              ull(need - FlashGeometry::kSpare), FlashGeometry::kSpare);
    return false;
  }
  g->superblocks = static_cast<uint32_t>(std::max(count, need));
  g->least_superblocks = static_cast<uint32_t>(need);
  return true;
}

}  // namespace

bool FlashGeometry::make(const FlashProfile &profile, uint64_t sectors, FlashGeometry *out,
                         rd_error *error) {
  FlashGeometry g;
  uint64_t bytes = sectors * RD_SECTOR_BYTES;
  if (!check_shapes(profile, error))
    return false;
  g.unit_bytes = profile.map_unit_bytes;
  while (ceil_div(bytes, g.unit_bytes) > kMostUnits)
    g.unit_bytes *= 2;
  g.units = ceil_div(bytes, g.unit_bytes);
  g.granule = g.unit_bytes / 256;
  g.channels = profile.channels;
  g.dies = profile.channels * profile.dies_per_channel;
  g.planes = profile.planes;
  g.page_bytes = profile.page_bytes;
  g.raise = profile.raise != 0;
  g.data_dies = g.dies - (g.raise ? 1 : 0);
  g.group_bytes = g.planes * g.page_bytes;
  g.room_bytes = g.unit_bytes + (profile.journal_permille ? g.page_bytes : 0);
  if (!check_ratio(g, profile, error) ||
      !fit_blocks(&g, profile, std::max<uint64_t>(bytes, 1), error))
    return false;
  // Superblock numbers start at 1: address 0 is "not mapped".
  uint32_t number_bits = static_cast<uint32_t>(std::bit_width(uint64_t{g.superblocks} + 1));
  g.slot_bytes = RD_SECTOR_BYTES;
  while (std::bit_width(g.data_bytes / g.slot_bytes) + number_bits > kAddressBits)
    g.slot_bytes *= 2;
  g.slot_bits = static_cast<uint32_t>(std::bit_width(g.data_bytes / g.slot_bytes));
  *out = g;
  return true;
}

}  // namespace revodrive
