// SPDX-License-Identifier: GPL-2.0-or-later
//
// The phy event counters of log 11h (Serial ATA 3.0, 13.9): 16 bits each, stop at their maximum,
// lost with the power, set to 0 by a read that asks for it. Which there are, and their order in the
// log, is what SandForce drives report.
#ifndef REVODRIVE_SATA_PHY_COUNTERS_H
#define REVODRIVE_SATA_PHY_COUNTERS_H

#include <array>
#include <cstdint>

#include "revodrive/stream.h"
#include "sata/page.h"

namespace revodrive {

class PhyCounters {
 public:
  enum Id : uint8_t {
    kCommandIcrc = 0x01,      // commands that ended with ICRC
    kDataRErr = 0x02,         // R_ERR for a data FIS, both directions ...
    kDataOutRErr = 0x03,      // ... device to host
    kDataInRErr = 0x04,       // ... host to device
    kNonDataRErr = 0x05,      // the same for the other FISes
    kNonDataOutRErr = 0x06,   //
    kNonDataInRErr = 0x07,    //
    kRetries = 0x08,          // device-to-host FISes other than data sent again
    kNotReady = 0x09,         // the drive's phy lost the link
    kSignatures = 0x0A,       // signature FISes sent, one for each COMRESET
    kCrcErrors = 0x0B,        // CRC errors in FISes from the host
    kNonCrcErrors = 0x0D,     // other errors in FISes from the host
    kDataInCrc = 0x0F,        // R_ERR for data from the host because of CRC ...
    kDataInNonCrc = 0x10,     // ... because of anything else
    kNonDataInCrc = 0x12,     // the same for the other FISes
    kNonDataInNonCrc = 0x13,  //
  };
  enum class Direction { kToHost, kToDevice };

  void count(Id id, unsigned events = 1);
  // A data FIS that arrived damaged, with all the counters that show it.
  void count_data_crc(Direction direction);
  uint16_t value(Id id) const { return values_[id]; }
  void clear() { values_ = {}; }

  Page page() const;
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  std::array<uint16_t, kNonDataInNonCrc + 1> values_{};  // by id
};

}  // namespace revodrive
#endif
