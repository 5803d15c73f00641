// SPDX-License-Identifier: GPL-2.0-or-later
//
// The layout of the stripe against the plain words of its definition: chunk 0 on member 0, chunk 1
// on member 1, and so on, round and round.
#include <algorithm>
#include <utility>
#include <vector>

#include "random.h"
#include "runner.h"
#include "volume/stripe.h"

using namespace revodrive;

namespace {

// The member and LBA of one block, counted out.
std::pair<unsigned, uint64_t> plain(unsigned members, uint32_t chunk, uint64_t lba) {
  uint64_t number = lba / chunk;
  return {static_cast<unsigned>(number % members), number / members * chunk + lba % chunk};
}

}  // namespace

START_TEST(shares_hold_exactly_the_blocks_of_a_range) {
  Random random(test::seed());
  for (int round = 0; round < 300; round++) {
    auto members = static_cast<unsigned>(1 + random.below(8));
    auto chunk = static_cast<uint32_t>(8u << random.below(6));
    Stripe stripe(members, chunk, 4096 + random.below(5000));
    uint64_t lba = random.below(stripe.sectors());
    uint64_t sectors = 1 + random.below(std::min<uint64_t>(stripe.sectors() - lba, 3000));
    std::vector<uint64_t> next(members);
    for (unsigned i = 0; i < members; i++)
      next[i] = stripe.below(i, lba);
    for (uint64_t at = lba; at < lba + sectors; at++) {
      auto [member, where] = plain(members, chunk, at);
      ck_assert_uint_eq(next[member], where);
      ck_assert_uint_eq(stripe.volume_lba(member, where), at);
      next[member]++;
    }
    for (unsigned i = 0; i < members; i++)
      ck_assert_uint_eq(next[i], stripe.below(i, lba + sectors));
  }
}
END_TEST

START_TEST(the_tail_behind_the_last_chunk_is_not_used) {
  Stripe stripe(4, 128, 1000);
  ck_assert_uint_eq(stripe.member_sectors(), 896);
  ck_assert_uint_eq(stripe.sectors(), 3584);
  for (unsigned i = 0; i < 4; i++)
    ck_assert_uint_eq(stripe.below(i, stripe.sectors()), 896);
}
END_TEST

int main() {
  return test::run_tests("volume_stripe", {shares_hold_exactly_the_blocks_of_a_range,
                                           the_tail_behind_the_last_chunk_is_not_used});
}
