// SPDX-License-Identifier: GPL-2.0-or-later
//
// Register offsets and bits of the 88SE94xx as Linux drives it. Names follow the driver
// (drivers/scsi/mvsas: mv_94xx.h for offsets and bits, mv_defs.h and mv_chips.h for common bits).
// No Marvell data sheet is public; what the driver does not reveal is a choice of this model, told
// in docs/registers.md. All accesses are 32 bits wide and little-endian.
#ifndef REVODRIVE_BRIDGE_REGISTERS_H
#define REVODRIVE_BRIDGE_REGISTERS_H

#include <cstdint>

namespace revodrive::regs {

constexpr uint32_t kBarBytes = 0x40000;
constexpr unsigned kCores = 2;
constexpr unsigned kPhysPerCore = 4;
constexpr unsigned kSlots = 2048;  // slot_width 11
// Register sets whose FIS area lies inside the 0x1900 bytes the driver allocates (fis_count 17).
constexpr unsigned kRegisterSets = 17;

// Chip level, offsets in BAR 2.
constexpr uint32_t kSgpio = 0x0C200;  // two hosts of 0x100 bytes: storage
constexpr uint32_t kSgpioBytes = 0x200;
constexpr uint32_t kSpi = 0x0C800;  // control, address, write data, read data
constexpr uint32_t kSpiBytes = 0x10;
constexpr uint32_t kChipConfig = 0x10104;
constexpr uint32_t kGlobal = 0x10200;  // status, control, -, enable, three more enables
constexpr uint32_t kGlobalBytes = 0x1C;
constexpr uint32_t kGlobalStatus = 0x10200;
constexpr uint32_t kGlobalEnable = 0x1020C;
constexpr uint32_t kCore0 = 0x20000;
constexpr uint32_t kCoreStride = 0x4000;
constexpr uint32_t kCoreBytes = 0x300;
constexpr uint32_t kGlobalCoreBit = 1u << 18;  // core 0; core 1 is the next bit

// Core level, offsets from the core's base.
constexpr uint32_t kCtl = 0x100;
constexpr uint32_t kPcs = 0x104;
constexpr uint32_t kCmdListLo = 0x108;
constexpr uint32_t kCmdListHi = 0x10C;
constexpr uint32_t kRxFisLo = 0x110;
constexpr uint32_t kRxFisHi = 0x114;
constexpr uint32_t kTxCfg = 0x120;
constexpr uint32_t kTxLo = 0x124;
constexpr uint32_t kTxHi = 0x128;
constexpr uint32_t kTxProd = 0x12C;
constexpr uint32_t kTxCons = 0x130;
constexpr uint32_t kRxCfg = 0x134;
constexpr uint32_t kRxLo = 0x138;
constexpr uint32_t kRxHi = 0x13C;
constexpr uint32_t kRxCons = 0x140;
constexpr uint32_t kIntCoal = 0x148;
constexpr uint32_t kIntCoalTimeout = 0x14C;
constexpr uint32_t kIntStat = 0x150;
constexpr uint32_t kIntMask = 0x154;
constexpr uint32_t kIntStatSrs0 = 0x158;
constexpr uint32_t kIntStatSrs1 = 0x160;
constexpr uint32_t kNonNcqErr0 = 0x168;
constexpr uint32_t kNonNcqErr1 = 0x16C;
constexpr uint32_t kCmdAddr = 0x170;
constexpr uint32_t kCmdData = 0x174;
constexpr uint32_t kPortIrq = 0x180;    // status, mask; 8 bytes a phy, 4 phys
constexpr uint32_t kSerialCtl = 0x1D0;  // 4 bytes a phy, 4 phys
constexpr uint32_t kPortCfg = 0x200;    // address, data; 8 bytes a port, 8 ports
constexpr uint32_t kPortVsr = 0x250;    // address, data; 8 bytes a phy, 4 phys
constexpr uint32_t kAllVsr = 0x290;     // address, data; write: four phys, read: phy 0
constexpr unsigned kCfgPorts = 8;

constexpr uint32_t kCtlReset = 1u << 5;
constexpr uint32_t kPcsIssueEnable = 1u << 0;
constexpr uint32_t kPcsReset = 1u << 1;
constexpr uint32_t kRingEnable = 1u << 16;
constexpr uint32_t kRingSizeMask = 0xFFF;
constexpr uint32_t kRxNone = 0xFFF;
constexpr uint32_t kCoalEnable = 1u << 16;
constexpr uint32_t kCoalCountMask = 0x1FF;
constexpr uint32_t kCoalTimeMask = 0xFFFF;

constexpr uint32_t kIntDone = 1u << 0;
constexpr unsigned kIntPortShift = 8;

// Indirect command space.
constexpr uint32_t kCmdSpaceBytes = 0x400;
constexpr uint32_t kCommandActive = 0x300;  // one bit a slot

// P_INT_STAT.
constexpr uint32_t kPhyReadyChanged = 1u << 0;
constexpr uint32_t kPhyIdDone = 1u << 2;  // SAS: the IDENTIFY frames were exchanged
constexpr uint32_t kPhyComwake = 1u << 7;
constexpr uint32_t kPhyReadyLost = 1u << 12;  // POOF
constexpr uint32_t kPhySignature = 1u << 16;

// SER_CTLSTAT.
constexpr uint32_t kSerialReset = 1u << 0;
constexpr uint32_t kSerialHardReset = 1u << 1;
constexpr uint32_t kSerialRateLimits = 0x3700;  // bits 10:8 minimum, 13:12 maximum
constexpr unsigned kSerialRateShift = 16;       // negotiated: 0, 1, 2 for 1.5, 3, 6 Gb/s
constexpr uint32_t kSerialReady = 1u << 20;

// Indirect per-port configuration space and vendor space.
constexpr uint32_t kPhySpaceBytes = 0x200;
constexpr uint32_t kCfgSignature = 0x20;  // four dwords
constexpr uint32_t kCfgAttached = 0x11C;  // IDENTIFY frame of the far end, seven dwords
constexpr uint32_t kCfgAttachedEnd = 0x138;
constexpr uint32_t kVsrConfig = 0x08;
constexpr uint32_t kVsrStatus = 0x0C;
constexpr uint32_t kVsrConfigReset = 1u << 0;
constexpr uint32_t kVsrConfigDisable = 1u << 23;
constexpr uint32_t kVsrStatusSata = 0x001D0000;
constexpr uint32_t kVsrStatusSas = 0x00100000;

}  // namespace revodrive::regs
#endif
