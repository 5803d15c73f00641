// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memo: always what the function says, and not asked twice for what is known.
#include "revodrive/memo.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

uint64_t value_of(uint64_t key) {
  return key * key + 1;
}

}  // namespace

// Far more keys than places, so that they push each other out.
START_TEST(says_what_the_function_says) {
  Random random(test::seed());
  Memo<uint64_t> memo;
  for (int i = 0; i < 100'000; i++) {
    uint64_t key = random.below(random.one_in(2) ? 20 : 1'000'000) << random.below(44);
    ck_assert_uint_eq(memo.of(key, [&] { return value_of(key); }), value_of(key));
  }
}
END_TEST

START_TEST(asks_once) {
  Memo<uint64_t> memo;
  unsigned asked = 0;
  for (int i = 0; i < 10; i++)
    ck_assert_uint_eq(memo.of(0, [&] { return ++asked; }), 1);
  ck_assert_uint_eq(asked, 1);
}
END_TEST

int main() {
  return test::run_tests("memo", {says_what_the_function_says, asks_once});
}
