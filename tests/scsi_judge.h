// SPDX-License-Identifier: GPL-2.0-or-later
//
// What tests say of a command that has ended on a ScsiBench: good, or refused with this sense.
#ifndef REVODRIVE_TESTS_SCSI_JUDGE_H
#define REVODRIVE_TESTS_SCSI_JUDGE_H

#include "scsi_bench.h"

#include <check.h>  // its macros come behind the standard library

namespace revodrive {

inline void good(const ScsiJob &job) {
  ck_assert_msg(job.command.status == 0, "sense %x %04x", job.key(), job.code());
}

inline void refused(const ScsiJob &job, uint8_t key, unsigned code) {
  ck_assert_uint_eq(job.command.status, 2);
  ck_assert_uint_eq(job.key(), key);
  ck_assert_uint_eq(job.code(), code);
}

inline void bad_field(const ScsiJob &job, int byte, int bit = -1) {
  refused(job, 5, 0x2400);
  ck_assert_int_eq(job.field(), byte);
  ck_assert_int_eq(job.bit(), bit);
  ck_assert(job.in_cdb());
}

inline uint64_t be(const ScsiJob &job, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++)
    value = value << 8 | const_cast<ScsiJob &>(job).window.data()[at + i];
  return value;
}

}  // namespace revodrive
#endif
