// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/simulation.h"
#include "sim/user_error.h"

namespace revodrive::sim {

HostSetup read_setup(const rd_card_config &config) {
  HostSetup setup;
  rd_error error = {};
  int status = rd_profile_settings(
      config.profile, config.profile_set,
      [](void *opaque, const char *section, const char *key, const char *value) {
        auto &settings = static_cast<HostSetup *>(opaque)->settings;
        settings[std::string(section) + "." + key] = value;
      },
      &setup, &error);
  if (status != 0)
    throw UserError(error.text);
  auto number = [&](const char *key) { return parse_number(setup.settings.at(key)).value(); };
  setup.profile = setup.settings.at("profile.name");
  setup.cost.submit_ns = static_cast<int64_t>(number("host.submit_ns"));
  setup.cost.complete_ns = static_cast<int64_t>(number("host.complete_ns"));
  setup.coalescing.count = static_cast<uint32_t>(number("host.coalesce_count"));
  setup.coalescing.us = static_cast<uint32_t>(number("host.coalesce_us"));
  setup.depth = static_cast<unsigned>(number("host.queue_depth"));
  setup.max_command_bytes = static_cast<uint32_t>(number("host.max_transfer_kib") << 10);
  setup.members = static_cast<unsigned>(number("card.members"));
  setup.member_bytes = number("card.member_bytes");
  setup.settings.erase("profile.name");
  return setup;
}

}  // namespace revodrive::sim
