// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a chunk of data would take when compressed, without compressing it: an estimate of what zstd
// makes of it at level 1, for a fraction of its time.
//
// It is one pass as a compressor of the LZ77 family makes it: earlier places of the same bytes are
// found by a hash table, the fewer are looked for the longer none was found, and what no match
// covers is a literal. Instead of coding all that, it is counted: literals cost their order-0
// entropy and a table of codes, matches the entropy of the magnitudes of their offsets and lengths,
// and the bits below those. Where matches are dense, a stretch of data stands for what follows it,
// and of many literals a part is counted; that is where most of the error comes from. The rules
// when literals or the whole chunk are kept as they are follow zstd's format (RFC 8878) and what
// its encoder does.
//
// Integers only and no order of bytes in memory that matters but x86's and arm64's: the same on
// each machine. tests/test_estimate.cc bounds the error.
#ifndef REVODRIVE_SF2281_ESTIMATE_H
#define REVODRIVE_SF2281_ESTIMATE_H

#include <cstdint>
#include <span>

namespace revodrive {

// Estimated compressed size of up to 4096 bytes. Never more than the chunk's size; that itself if
// it does not compress. A longer chunk is taken as incompressible.
uint32_t estimate_compressed_bytes(std::span<const uint8_t> chunk);

}  // namespace revodrive
#endif
