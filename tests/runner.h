// SPDX-License-Identifier: GPL-2.0-or-later
//
// main() of a unit test: a list of libcheck tests, each in a process of its own (CK_FORK=no keeps
// them in one, for a debugger), and a seed for the random ones that is printed, so that
// REVODRIVE_SEED=N repeats a failure.
#ifndef REVODRIVE_TESTS_RUNNER_H
#define REVODRIVE_TESTS_RUNNER_H

#include <check.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace revodrive::test {

inline int run_tests(const char *name, std::initializer_list<const TTest *> tests) {
  Suite *suite = suite_create(name);
  TCase *tcase = tcase_create(name);
  tcase_set_timeout(tcase, 120);
  for (const TTest *test : tests)
    tcase_add_test(tcase, test);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// A fixed seed unless the environment names one: CI is repeatable, a search can try others.
inline uint64_t seed() {
  const char *text = std::getenv("REVODRIVE_SEED");
  uint64_t value = text ? std::strtoull(text, nullptr, 0) : 20111;
  std::printf("REVODRIVE_SEED=%llu\n", static_cast<unsigned long long>(value));
  std::fflush(stdout);
  return value;
}

// ck_assert_str_eq() keeps pointers into temporaries beyond their life; this does not.
inline void check_text(const std::string &got, const std::string &want) {
  ck_assert_msg(got == want, "got \"%s\", not \"%s\"", got.c_str(), want.c_str());
}

}  // namespace revodrive::test
#endif
