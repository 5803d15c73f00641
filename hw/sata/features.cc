// SPDX-License-Identifier: GPL-2.0-or-later
//
// Commands about the drive itself: identity, settings, diagnostics, and all that it does not know.
#include "sata/drive.h"
#include "sata/identify.h"
#include "sata/panic.h"

namespace revodrive {

void Drive::unsupported(AtaCommand &command, const Request &request) {
  fail(command, request, ata::kAbort);
}

void Drive::identify(AtaCommand &command, const Request &request) {
  if (options_.panicked)
    return reply(command, request, panic_identify_page(sata_generation_));
  reply(command, request,
        identify_page({.identity = identity_,
                       .firmware = firmware_.revision(),
                       .settings = settings_,
                       .sectors = hpa_.sectors(),
                       .sata_generation = sata_generation_,
                       .smart_enabled = smart_.enabled(),
                       .security = security_,
                       .max_address_password = hpa_.has_password()}));
}

void Drive::set_features(AtaCommand &command, const Request &request) {
  uint8_t feature = request.task.feature();
  if (!settings_.set_feature(feature, request.task.count))
    return fail(command, request, ata::kAbort);
  // What was promised to be cached only must not stay there (ATA8-ACS 7.48.4).
  if (feature == ata::kDisableWriteCache)
    return submit_flush(command, request);
  succeed(command, request, request.ready_ns);
}

void Drive::set_multiple(AtaCommand &command, const Request &request) {
  if (!settings_.set_multiple(request.task.count8()))
    return fail(command, request, ata::kAbort);
  succeed(command, request, request.ready_ns);
}

// Answers with the signature (ATA8-ACS 7.13).
void Drive::diagnose(AtaCommand &command, const Request &request) {
  succeed(command, request, request.ready_ns);
  command.d2h = signature();
}

}  // namespace revodrive
