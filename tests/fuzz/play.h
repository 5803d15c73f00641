// SPDX-License-Identifier: GPL-2.0-or-later
//
// A hostile guest, and a backend that may fail, as a string of bytes: the first says what card it
// is, the rest are steps (registers, guest memory, ATA and SCSI commands with their scatter lists,
// time, resets, plugs, faults, state saved and put back). The fuzzer invents such strings; the unit
// test `fuzz_corpus` plays those that were kept.
#ifndef REVODRIVE_TESTS_FUZZ_PLAY_H
#define REVODRIVE_TESTS_FUZZ_PLAY_H

#include <cstdint>
#include <span>

namespace revodrive::test {

// Ends the program where the card breaks its contract with the host.
void play(std::span<const uint8_t> bytes);

}  // namespace revodrive::test
#endif
