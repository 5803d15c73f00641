// SPDX-License-Identifier: GPL-2.0-or-later
//
// The numbers that make one product differ from another. They come from an INI file
// (hw/profiles/*.ini, built into the library, or the user's), where each carries its source; a file
// may state only its differences from another, "[profile] base=NAME". Loading one that has an
// unknown key, lacks a key or holds a value out of range fails with a message that names it.
// Each part of the card gets its own section of this structure and sees nothing else.
#ifndef REVODRIVE_PROFILE_H
#define REVODRIVE_PROFILE_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "revodrive/host.h"

namespace revodrive {

// [pcie] The link between host and bridge.
struct PcieProfile {
  uint32_t lanes = 0;               // 1, 2, 4, 8, 16
  uint32_t lane_mb_s = 0;           // after 8b/10b, each direction: gen1 250, gen2 500
  uint32_t max_payload_bytes = 0;   // largest TLP payload, 128..4096, a power of two
  uint32_t completion_bytes = 0;    // payload of what answers a read of host memory, 64..4096
  uint32_t tlp_overhead_bytes = 0;  // framing, header, LCRC, and a share of the DLLPs
  uint32_t read_latency_ns = 0;     // request to first completion of a read of host memory
};

// [bridge] The SAS/SATA controller.
struct BridgeProfile {
  uint32_t command_ns = 0;     // occupancy of the command processor per command
  uint32_t completion_ns = 0;  // from the last FIS to the completion entry
};

// [sata] One link between bridge and drive.
struct SataProfile {
  uint32_t speed = 0;                // generation: 1, 2, 3 for 1.5, 3, 6 Gb/s
  uint32_t efficiency_permille = 0;  // of the line rate that FISes get; the rest is ALIGN and HOLD
  uint32_t fis_overhead_bytes = 0;   // SOF, EOF, CRC, primitives and turnaround per FIS, in bytes
  uint32_t link_up_us = 0;           // COMRESET to signature FIS; at most 400000
};

// [flash] The drive's controller and its NAND. What a 0 means is said where it is allowed.
struct FlashProfile {
  // Controller.
  uint32_t command_ns = 0;               // firmware time per command
  uint32_t read_unit_ns = 0;             // ... and per 4 KiB read
  uint32_t write_unit_ns = 0;            // ... and per 4 KiB written
  uint32_t write_command_ns = 0;         // ... and when a write has been accepted
  uint32_t read_latency_ns = 0;          // what a read takes that holds up no other command
  uint32_t write_latency_ns = 0;         // the same of a write
  uint32_t trim_range_ns = 0;            // ... and per range of a DATA SET MANAGEMENT
  uint32_t compress_mb_s = 0;            // engine, in data of the host; 0: takes no time
  uint32_t compress_segment_bytes = 0;   // it starts when so much of a command is there
  uint64_t compress_measure = 0;         // how data is measured; 0: estimated, 1: by zstd
  uint32_t decompress_mb_s = 0;          // the same for reads
  uint32_t store_mb_s = 0;               // stored host data, from the buffer to dies; 0: any
  uint32_t store_floor_permille = 0;     // smallest stored share after compression; 0: none
  uint64_t dedupe_window_chunks = 0;     // 4 KiB chunks known to be stored; 0: no deduplication
  uint64_t dedupe_reference_bytes = 16;  // what a known chunk costs
  uint32_t write_buffer_bytes = 0;       // stored data accepted and not yet in flash
  uint32_t read_ahead_bytes = 0;         // read ahead of a sequential stream; 0: nothing

  // NAND.
  uint32_t channels = 0;          // 1..16
  uint32_t dies_per_channel = 0;  // 1..16
  uint32_t planes = 0;            // pages programmed or read at once by a die: 1, 2, 4
  uint32_t page_bytes = 0;        // user bytes of a NAND page
  uint32_t page_spare_bytes = 0;  // also transferred
  uint32_t codeword_bytes = 0;  // of the error correction: the least that is moved; divides a page
  uint32_t decode_mb_s = 0;     // error correction of a channel, in data; 0: keeps up with the bus
  uint32_t block_pages = 0;     // pages of a block: what is erased at once in a plane, 16..4096
  uint32_t blocks_per_plane = 0;  // 0: follows from the drive's size and raw_permille
  uint32_t bus_mb_s = 0;          // channel bus
  uint32_t bus_command_ns = 0;    // on the bus per page: command, address, status
  uint32_t read_page_us = 0;      // tR
  uint32_t program_page_us = 0;   // tPROG
  uint32_t erase_block_us = 0;    // tBERS

  // Flash translation.
  uint32_t raw_permille = 0;           // raw flash for each 1000 bytes of the drive's size
  uint32_t raise = 0;                  // 1: one die's worth of each superblock is parity
  uint32_t journal_permille = 0;       // written on top of data: changes of the map, metadata
  uint32_t map_unit_bytes = 0;         // what is mapped as one, 4096..65536, a power of two
  uint32_t map_cache_units = 0;        // units whose mapping the controller holds; 0: all
  uint32_t map_miss_ns = 0;            // firmware time to bring one
  uint32_t map_page_units = 0;         // units whose mapping one flash read brings
  uint32_t gc_cost_benefit = 0;        // victims: 0 greedy, 1 weighed by age
  uint32_t gc_free_permille = 0;       // garbage is collected while fewer superblocks are free
  uint32_t wear_delta = 0;             // erasures between most and least worn; 0: not levelled
  uint32_t endurance_cycles = 0;       // rated erasures of a block
  uint32_t block_fail_ppb = 0;         // chance of an erasure that a block fails, within the rating
  uint32_t spare_blocks_permille = 0;  // blocks kept to replace failed ones

  // Blocks erased at the same time when a superblock is opened; 0: one of each plane of each die.
  uint64_t erase_at_once = 0;
  // Background collection, while no command comes. May be left out.
  uint64_t idle_gc_ms = 0;              // idle time before it begins; 0: there is none
  uint64_t idle_gc_free_permille = 20;  // it ends when so many superblocks are free

  // Sustained writes of client firmware.
  uint32_t throttle_iops = 0;       // 4 KiB writes a second; 0: not limited
  uint32_t throttle_burst_ios = 0;  // accepted at once before that
  uint32_t throttle_kb_s = 0;       // stored data in 1000 bytes a second; 0: not limited
  uint32_t throttle_burst_kb = 0;

  // Energy.
  uint32_t idle_mw = 0;      // controller and idle flash, while the drive has power
  uint32_t active_mw = 0;    // more while its firmware works
  uint32_t read_nj = 0;      // of a die for one tR, whatever number of planes
  uint32_t program_nj = 0;   // ... for one tPROG
  uint32_t erase_nj = 0;     // ... for one tBERS
  uint32_t bus_pj_byte = 0;  // per byte over a channel
};

// [volume] The firmware that makes one volume of the members (mode=vca). May be left out.
struct VolumeProfile {
  uint64_t command_ns = 0;  // for each request of the host
  uint64_t part_ns = 0;     // for each member command it is cut into
  // policy=dispatch.
  uint64_t dispatch_ns = 0;     // to choose a member for a chunk
  uint64_t map_ns = 0;          // to look up or enter a piece in the map
  uint64_t balance_kib = 1024;  // the host's writes to a member may be ahead by
};

// [identity] What the drive says of itself.
struct IdentityProfile {
  std::string model;     // up to 40 characters
  std::string firmware;  // up to 8
};

// [card] What the product is sold as; QEMU's devices take both from their images instead. May be
// left out.
struct CardProfile {
  uint64_t members = 4;
  uint64_t member_bytes = 120034123776;
};

// [host] What the reviewer's driver and processor add to each command, for revosim. May be left
// out.
struct HostProfile {
  uint64_t submit_ns = 0;    // processor time per command before the doorbell
  uint64_t complete_ns = 0;  // from the interrupt to the program that waited
  // How its driver programs interrupt coalescing; count 0: an interrupt for each completion.
  uint64_t coalesce_count = 511;
  uint64_t coalesce_us = 128;
  uint64_t queue_depth = 32;        // NCQ tags in use for each SSD
  uint64_t max_transfer_kib = 512;  // longest command
};

struct Profile {
  std::string name;
  CardProfile card;
  HostProfile host;
  PcieProfile pcie;
  BridgeProfile bridge;
  SataProfile sata;
  FlashProfile flash;
  VolumeProfile volume;
  IdentityProfile identity;

  // `source`: NULL for the first built-in profile, the name of one, or a file (with a '/', or
  // ending in ".ini"). `overrides`: NULL or "section.key=value;…". False: *error is set, *out is
  // unspecified.
  static bool load(const char *source, const char *overrides, Profile *out, rd_error *error);
  // The same, telling each value in force; [profile] name is what saved states call it.
  using Visitor = std::function<void(const char *section, const char *key, const char *value)>;
  static bool load(const char *source, const char *overrides, Profile *out, rd_error *error,
                   const Visitor &visit);
  static std::vector<std::string> builtin_names();
};

}  // namespace revodrive
#endif
