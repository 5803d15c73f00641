// SPDX-License-Identifier: GPL-2.0-or-later
//
// READ and WRITE LOG (DMA) EXT (ATA8-ACS 7.27, 7.28, 7.66, 7.67) and the logs there are: directory
// 00h, queued error 10h, phy counters 11h, host logs 80h to 9Fh.
#include "sata/drive.h"

namespace revodrive {

namespace {

uint8_t log_address(const TaskFile &task) {
  return static_cast<uint8_t>(task.lba);
}

// Page number bits 7:0 in LBA 15:8, bits 15:8 in LBA 39:32.
uint32_t first_page(const TaskFile &task) {
  return static_cast<uint32_t>((task.lba >> 8 & 0xFF) | (task.lba >> 32 & 0xFF) << 8);
}

}  // namespace

uint32_t Drive::log_pages(LogSpace space, uint8_t address) {
  if (HostLogs::is_host_log(address))
    return HostLogs::kPages;
  if (address == ata::kLogDirectory)
    return 1;
  bool general_only = address == ata::kLogQueuedError || address == ata::kLogPhyCounters;
  return general_only && space == LogSpace::kGeneral ? 1 : 0;
}

void Drive::read_log(AtaCommand &command, const Request &request) {
  send_log(command, request, LogSpace::kGeneral, first_page(request.task), request.task.count);
}

void Drive::write_log(AtaCommand &command, const Request &request) {
  receive_log(command, request, first_page(request.task), request.task.count);
}

void Drive::send_log(AtaCommand &command, const Request &request, LogSpace space, uint32_t first,
                     uint32_t count) {
  uint8_t address = log_address(request.task);
  uint32_t pages = log_pages(space, address);
  if (count == 0 || first >= pages || count > pages - first)
    return fail(command, request, ata::kAbort);
  uint32_t bytes = count * ata::kSectorBytes;
  if (command.data->size() < bytes)
    return fail_short(command, request);
  for (uint32_t i = 0; i < count; i++) {
    Page page = log_page(space, address, first + i);
    if (!command.data->copy_to_guest(i * ata::kSectorBytes, page.bytes()))
      return fail_short(command, request);
  }
  if (address == ata::kLogPhyCounters && (request.task.feature() & 1))
    comresets_ = 0;  // "reset counters" (Serial ATA 3.0, 13.9.3)
  Span ready{request.ready_ns, request.ready_ns};
  int64_t sent_ns =
      wire_.send(*command.data, request.info.protocol, ata::kSectorBytes, ready, bytes);
  succeed(command, request, sent_ns);
}

void Drive::receive_log(AtaCommand &command, const Request &request, uint32_t first,
                        uint32_t count) {
  uint8_t address = log_address(request.task);
  uint32_t pages = HostLogs::is_host_log(address) ? HostLogs::kPages : 0;
  if (count == 0 || first >= pages || count > pages - first)
    return fail(command, request, ata::kAbort);
  std::array<uint8_t, HostLogs::kPages * ata::kSectorBytes> data;
  std::span<uint8_t> used(data.data(), count * ata::kSectorBytes);
  if (command.data->size() < used.size() || !command.data->copy_from_guest(0, used))
    return fail_short(command, request);
  for (uint32_t i = 0; i < count; i++)
    host_logs_.write(address, first + i,
                     used.subspan(i * ata::kSectorBytes).first<ata::kSectorBytes>());
  int64_t at_ns = wire_.receive(*command.data, request.info.protocol, ata::kSectorBytes,
                                request.ready_ns, static_cast<uint32_t>(used.size()));
  succeed(command, request, at_ns);
}

Page Drive::log_page(LogSpace space, uint8_t address, uint32_t page) const {
  switch (address) {
    case ata::kLogDirectory:
      return directory_page(space);
    case ata::kLogQueuedError:
      return queue_.error_page();
    case ata::kLogPhyCounters:
      return phy_counters_page();
    default:
      return host_logs_.read(address, page);
  }
}

// Word 0 is the version, word n the number of pages of log n (ATA8-ACS A.2).
Page Drive::directory_page(LogSpace space) const {
  Page page;
  page.word(0, 1);
  for (unsigned address = 1; address < 256; address++)
    page.word(address, static_cast<uint16_t>(log_pages(space, static_cast<uint8_t>(address))));
  return page;
}

// Serial ATA 3.0, 13.9.2: identifier with the size in words in bits 14:12, then the value. Which
// ones there are, and in which order, is what SandForce drives report.
Page Drive::phy_counters_page() const {
  static constexpr uint16_t kIds[] = {0x001, 0x003, 0x004, 0x006, 0x007, 0x008, 0x009, 0x00A,
                                      0x00F, 0x010, 0x012, 0x013, 0x002, 0x005, 0x00B, 0x00D};
  constexpr uint16_t kOneWord = 1 << 12;
  constexpr uint16_t kSignaturesSent = 0x00A;
  Page page;
  size_t at = 4;
  for (uint16_t id : kIds) {
    page.put(at, kOneWord | id, 2);
    page.put(at + 2, id == kSignaturesSent ? comresets_ : 0, 2);
    at += 4;
  }
  page.seal();
  return page;
}

}  // namespace revodrive
