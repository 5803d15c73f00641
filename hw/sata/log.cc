// SPDX-License-Identifier: GPL-2.0-or-later
//
// READ and WRITE LOG (DMA) EXT (ATA8-ACS 7.27, 7.28, 7.66, 7.67) and the logs there are, as real
// drives list them: directory 00h, self-tests 06h, 07h and 09h, queued error 10h, phy counters 11h,
// host logs 80h to 9Fh, a vendor log B7h (empty here), SCT E0h and E1h. No error logs.
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
  switch (address) {
    case ata::kLogDirectory:
    case ata::kLogSctStatus:
    case ata::kLogSctData:
      return 1;
    case ata::kLogVendor:
      return 16;
    case ata::kLogSelfTest:
    case ata::kLogSelective:
      return space == LogSpace::kSmart ? 1 : 0;
    case ata::kLogExtendedSelfTest:
    case ata::kLogQueuedError:
    case ata::kLogPhyCounters:
      return space == LogSpace::kGeneral ? 1 : 0;
    default:
      return 0;
  }
}

void Drive::read_log(AtaCommand &command, const Request &request) {
  send_log(command, request, LogSpace::kGeneral, first_page(request.task), request.task.count);
}

void Drive::write_log(AtaCommand &command, const Request &request) {
  receive_log(command, request, LogSpace::kGeneral, first_page(request.task), request.task.count);
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
  catch_up(command.issue_ns);
  for (uint32_t i = 0; i < count; i++) {
    Page page;
    if (!log_page(space, address, first + i, &page))
      return fail(command, request, ata::kAbort);
    if (!command.data->copy_to_guest(i * ata::kSectorBytes, page.bytes()))
      return fail_short(command, request);
  }
  if (address == ata::kLogPhyCounters && (request.task.feature() & 1))
    phy_counters_.clear();  // "reset counters" (Serial ATA 3.0, 13.9.3)
  Span ready{request.ready_ns, request.ready_ns};
  int64_t sent_ns = wire_.send(*command.data, request.info.protocol, ata::kSectorBytes, ready,
                               bytes, command.journey);
  succeed(command, request, sent_ns);
}

void Drive::receive_log(AtaCommand &command, const Request &request, LogSpace space, uint32_t first,
                        uint32_t count) {
  uint8_t address = log_address(request.task);
  bool writable = HostLogs::is_host_log(address) || address == ata::kLogSelective ||
                  address == ata::kLogSctStatus;
  uint32_t pages = writable ? log_pages(space, address) : 0;
  if (count == 0 || first >= pages || count > pages - first)
    return fail(command, request, ata::kAbort);
  std::array<uint8_t, HostLogs::kPages * ata::kSectorBytes> data;
  std::span<uint8_t> used(data.data(), count * ata::kSectorBytes);
  if (command.data->size() < used.size() || !command.data->copy_from_guest(0, used))
    return fail_short(command, request);
  catch_up(command.issue_ns);
  if (!write_log_pages(address, first, used))
    return fail(command, request, ata::kAbort);
  if (address != ata::kLogSctStatus)
    persist(command);
  int64_t at_ns =
      wire_.receive(*command.data, request.info.protocol, ata::kSectorBytes, request.ready_ns,
                    static_cast<uint32_t>(used.size()), command.journey);
  succeed(command, request, at_ns);
}

bool Drive::write_log_pages(uint8_t address, uint32_t first, std::span<const uint8_t> bytes) {
  if (address == ata::kLogSelective)
    return self_test_.write_selective(bytes.first<ata::kSectorBytes>());
  if (address == ata::kLogSctStatus)
    return sct_.command(bytes.first<ata::kSectorBytes>());
  for (size_t at = 0; at < bytes.size(); at += ata::kSectorBytes, first++)
    host_logs_.write(address, first, bytes.subspan(at).first<ata::kSectorBytes>());
  return true;
}

bool Drive::log_page(LogSpace space, uint8_t address, uint32_t number, Page *page) {
  switch (address) {
    case ata::kLogDirectory:
      *page = directory_page(space);
      return true;
    case ata::kLogSelfTest:
      *page = self_test_.log_page();
      return true;
    case ata::kLogExtendedSelfTest:
      *page = self_test_.extended_log_page();
      return true;
    case ata::kLogSelective:
      *page = self_test_.selective_page(smart_.power_on_ns());
      return true;
    case ata::kLogQueuedError:
      *page = queue_.error_page();
      return true;
    case ata::kLogPhyCounters:
      *page = phy_counters_.page();
      return true;
    case ata::kLogVendor:
      return true;
    case ata::kLogSctStatus:
      *page = sct_.status_page(sct_state());
      return true;
    case ata::kLogSctData:
      return sct_.table_page(*page);
    default:
      *page = host_logs_.read(address, number);
      return true;
  }
}

// ATA8-ACS table 43: what the drive does just now.
uint8_t Drive::sct_state() const {
  constexpr uint8_t kActive = 0, kStandby = 1, kTesting = 4;
  if (self_test_.running())
    return kTesting;
  return power_.mode(settings_, now_ns_) == PowerMode::kStandby ? kStandby : kActive;
}

// Word 0 is the version, word n the number of pages of log n (ATA8-ACS A.2).
Page Drive::directory_page(LogSpace space) const {
  Page page;
  page.word(0, 1);
  for (unsigned address = 1; address < 256; address++)
    page.word(address, static_cast<uint16_t>(log_pages(space, static_cast<uint8_t>(address))));
  return page;
}

}  // namespace revodrive
