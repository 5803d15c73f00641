// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the bridge reads from and writes to guest memory: delivery entries, command headers, PRDs,
// completion entries, error information. Guest bytes become checked values here and nowhere else.
// Layouts: drivers/scsi/mvsas/mv_sas.h (struct mvs_cmd_hdr), mv_defs.h (TXQ_*, RXQ_*), mv_94xx.h
// (struct mvs_prd, error bits).
#ifndef REVODRIVE_BRIDGE_LAYOUT_H
#define REVODRIVE_BRIDGE_LAYOUT_H

#include <array>
#include <cstdint>
#include <span>

namespace revodrive {

inline uint32_t load_le32(std::span<const uint8_t> bytes, size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 |
         static_cast<uint32_t>(bytes[at + 3]) << 24;
}
inline uint64_t load_le64(std::span<const uint8_t> bytes, size_t at) {
  return load_le32(bytes, at) | static_cast<uint64_t>(load_le32(bytes, at + 4)) << 32;
}

// An entry of the delivery (TX) ring.
struct TxEntry {
  enum Kind : uint8_t { kSsp = 1, kSmp = 2, kStp = 3 };
  explicit TxEntry(uint32_t raw)
      : slot(raw & 0xFFF),
        phys(raw >> 12 & 0xFF),
        register_set(raw >> 20 & 0x7F),
        kind(raw >> 29) {}
  uint16_t slot;         // 0..4095
  uint8_t phys;          // bitmap of core-local phys
  uint8_t register_set;  // 0..127
  uint8_t kind;          // 0..7
};

// A command header, 64 bytes at CMD_LIST + 64 * slot.
struct CommandHeader {
  static constexpr size_t kBytes = 64;
  using Raw = std::array<uint8_t, kBytes>;
  explicit CommandHeader(const Raw &raw)
      : prd_count(static_cast<uint16_t>(load_le32(raw, 0) >> 16)),
        atapi(load_le32(raw, 0) >> 5 & 1),
        ssp_frame(load_le32(raw, 0) >> 13 & 7),
        data_bytes(load_le32(raw, 0x0C)),
        table_addr(load_le64(raw, 0x10)),
        status_addr(load_le64(raw, 0x20)),
        prd_addr(load_le64(raw, 0x28)) {}
  uint16_t prd_count;  // as stated; ATA reads always state 255
  bool atapi;
  uint8_t ssp_frame;  // 0: command, else task management
  uint32_t data_bytes;
  uint64_t table_addr;   // H2D FIS at 0, CDB at 0x40
  uint64_t status_addr;  // error information, 8 bytes, then a response frame
  uint64_t prd_addr;
};
constexpr uint32_t kTableCdbOffset = 0x40;

// A piece of guest memory: one PRD, 12 bytes.
struct Prd {
  static constexpr size_t kBytes = 12;
  uint64_t addr;
  uint32_t len;  // 0 ends the list
  static Prd parse(std::span<const uint8_t> raw) {
    return {load_le64(raw, 0), load_le32(raw, 8) & 0x3FFFFF};
  }
};

// Bits of a completion (RX) entry; bits 11:0 are the slot.
constexpr uint32_t kRxDone = 1u << 16;
constexpr uint32_t kRxError = 1u << 17;
constexpr uint32_t kRxResponse = 1u << 18;  // SSP: a response frame was written
constexpr uint32_t kRxGood = 1u << 23;      // SSP: status GOOD, no frame

// Received FIS area: offset of the D2H register FIS of a register set.
constexpr uint32_t kRxFisSets = 0x800;
constexpr uint32_t kRxFisSetBytes = 0x100;
constexpr uint32_t kRxFisD2h = 0x40;

// First dword of the error information record.
namespace error_info {
constexpr uint32_t kNoDestination = 1u << 9;
constexpr uint32_t kOpenTimeout = 1u << 11;
constexpr uint32_t kDataOverUnder = 1u << 16;
constexpr uint32_t kTaskFile = 1u << 24;
constexpr uint32_t kDmaTerminated = 1u << 26;
}  // namespace error_info

}  // namespace revodrive
#endif
