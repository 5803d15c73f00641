/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "checks.h"

#define PLAN_BUFFER 0x20000

static bool read_plan(void) {
  uint32_t *to = (uint32_t *)&plan;

  if (call_packet(0x42, boot_drive, PLAN_LBA, 1, PLAN_BUFFER))
    return false;
  for (unsigned i = 0; i < sizeof(plan) / 4; i++)
    to[i] = peek32(PLAN_BUFFER + 4 * i);
  return plan.magic == PLAN_MAGIC;
}

void run_checks(void) {
  check(read_plan(), "plan", plan.magic);
  for (unsigned index = 0; index < plan.drives; index++) {
    check_parameters(index);
    check_chs_reads(index);
    check_chs_refusals(index);
    check_small_functions(index);
    check_extended_reads(index);
    check_extended_refusals(index);
    check_buffers(index);
    check_writes(index);
    check_drive_parameters(index);
  }
  check_registers();
  check_machine_state();
  check_other_drives();
  check_bad_sector();
  check_silent_drive();
  verdict();
}
