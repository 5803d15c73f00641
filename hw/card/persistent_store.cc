// SPDX-License-Identifier: GPL-2.0-or-later
#include "card/persistent_store.h"

#include "revodrive/error.h"

namespace revodrive {

bool PersistentStore::decode(std::span<const uint8_t> bytes, rd_error *error) {
  StreamReader in(bytes);
  in.section("RDPS");
  auto version = in.get<uint32_t>();
  if (in.ok() && version != kVersion) {
    set_error(error, "stored state has version %u, this card reads version %u", version, kVersion);
    return false;
  }
  auto count = in.get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    std::string serial(in.get<uint8_t>(), '\0');
    in.get_bytes({reinterpret_cast<uint8_t *>(serial.data()), serial.size()});
    auto len = in.get<uint32_t>();
    if (len > bytes.size())
      in.fail();
    std::vector<uint8_t> drive(in.ok() ? len : 0);
    in.get_bytes(drive);
    if (in.ok())
      put(serial, std::move(drive));
  }
  if (in.ok() && in.at_end())
    return true;
  set_error(error, "stored state is damaged (%zu bytes)", bytes.size());
  return false;
}

std::vector<uint8_t> PersistentStore::encode() const {
  StreamWriter out;
  out.section("RDPS");
  out.put(kVersion);
  out.put(static_cast<uint32_t>(drives_.size()));
  for (const auto &[serial, bytes] : drives_) {
    out.put(static_cast<uint8_t>(serial.size()));
    out.put_bytes({reinterpret_cast<const uint8_t *>(serial.data()), serial.size()});
    out.put(static_cast<uint32_t>(bytes.size()));
    out.put_bytes(bytes);
  }
  return out.bytes();
}

const std::vector<uint8_t> *PersistentStore::find(const std::string &serial) const {
  auto found = drives_.find(serial);
  return found == drives_.end() ? nullptr : &found->second;
}

void PersistentStore::put(const std::string &serial, std::vector<uint8_t> bytes) {
  if (drives_.size() >= kMaxDrives && !drives_.contains(serial))
    return;
  drives_[serial] = std::move(bytes);
}

}  // namespace revodrive
