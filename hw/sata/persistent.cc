// SPDX-License-Identifier: GPL-2.0-or-later
//
// What outlives the drive's power, as a list of sections: a mark of four letters, the length in
// bytes (32 bits), the bytes. Each belongs to one part of the drive. A reader skips marks that it
// does not know, and a part whose section is missing is as it left the factory: so older and newer
// versions read each other's.
#include <algorithm>

#include "revodrive/error.h"
#include "sata/drive.h"

namespace revodrive {

namespace {

// Of the flash: of the 512 KiB that a drive may take in the smallest store, less what others need.
constexpr size_t kFlashBytes = 192 << 10;

}  // namespace

struct Drive::Concern {
  char mark[5];
  void (*save)(Drive &drive, StreamWriter &out);
  // The reader holds this section alone and has to end at its end.
  void (*load)(Drive &drive, StreamReader &in);
};

const Drive::Concern Drive::kConcerns[] = {
    {"SMRT",
     [](Drive &drive, StreamWriter &out) {
       drive.smart_.save_persistent(out, drive.smart_totals());
     },
     [](Drive &drive, StreamReader &in) { drive.smart_.load_persistent(in); }},
    {"STST", [](Drive &drive, StreamWriter &out) { drive.self_test_.save(out); },
     [](Drive &drive, StreamReader &in) { drive.self_test_.load(in); }},
    {"TEMP", [](Drive &drive, StreamWriter &out) { drive.sct_.save_persistent(out); },
     [](Drive &drive, StreamReader &in) { drive.sct_.load_persistent(in); }},
    {"HLOG", [](Drive &drive, StreamWriter &out) { drive.host_logs_.save_persistent(out); },
     [](Drive &drive, StreamReader &in) { drive.host_logs_.load_persistent(in); }},
    {"SECU", [](Drive &drive, StreamWriter &out) { drive.security_.save_persistent(out); },
     [](Drive &drive, StreamReader &in) { drive.security_.load_persistent(in); }},
    {"HPA ", [](Drive &drive, StreamWriter &out) { drive.hpa_.save_persistent(out); },
     [](Drive &drive, StreamReader &in) { drive.hpa_.load_persistent(in); }},
    {"FWRV", [](Drive &drive, StreamWriter &out) { drive.firmware_.save_persistent(out); },
     [](Drive &drive, StreamReader &in) { drive.firmware_.load_persistent(in); }},
    {"TRIM", [](Drive &drive, StreamWriter &out) { drive.save_trim_map(out); },
     [](Drive &drive, StreamReader &in) { drive.load_trim_map(in); }},
    {"FLSH",
     [](Drive &drive, StreamWriter &out) { drive.flash_.save_persistent(out, kFlashBytes); },
     [](Drive &drive, StreamReader &in) { drive.load_flash(in); }},
};

// A drive of another shape (another profile, another size) begins as a new one.
void Drive::load_flash(StreamReader &in) {
  StreamReader stored = in.part(in.left());
  flash_.load_persistent(stored);
  if (!stored.ok() || !stored.at_end())
    flash_.renew(options_.preset, identity_.wwn, options_.image_data);
}

const Drive::Concern *Drive::find_concern(std::span<const char, 4> mark) const {
  auto found = std::find_if(std::begin(kConcerns), std::end(kConcerns), [&](const Concern &it) {
    return std::equal(mark.begin(), mark.end(), it.mark);
  });
  return found == std::end(kConcerns) ? nullptr : found;
}

void Drive::save_persistent(StreamWriter &out, int64_t now_ns) {
  catch_up(now_ns);
  for (const Concern &concern : kConcerns) {
    StreamWriter section;
    concern.save(*this, section);
    out.section(concern.mark);
    out.put(static_cast<uint32_t>(section.bytes().size()));
    out.put_bytes(section.bytes());
  }
}

void Drive::load_persistent(StreamReader &in) {
  while (in.ok() && !in.at_end()) {
    std::array<char, 4> mark;
    for (char &letter : mark)
      letter = in.get<char>();
    StreamReader section = in.part(in.get<uint32_t>());
    const Concern *concern = find_concern(mark);
    if (!concern || !in.ok())
      continue;
    concern->load(*this, section);
    if (!section.ok() || !section.at_end())
      in.fail();
  }
  reset(LinkReset::kPowerOn);
}

void Drive::power_on(int64_t now_ns) {
  smart_.start_clock(now_ns);
}

void Drive::persist(AtaCommand &command) {
  if (!store_)
    return;
  command.media_pending++;
  store_->store(&command, command.issue_ns);
}

void Drive::note_changed(int64_t now_ns) {
  if (store_)
    store_->changed(now_ns);
}

bool Drive::set(std::string_view name, uint64_t value, rd_error *error) {
  if (name != "smart_life_left") {
    set_error(error, "'%.*s': a drive has no such value; there is: smart_life_left",
              static_cast<int>(name.size()), name.data());
    return false;
  }
  if (value > 100) {
    set_error(error, "smart_life_left=%llu: must be 0 to 100 (percent)",
              static_cast<unsigned long long>(value));
    return false;
  }
  smart_.set_life_left_limit(static_cast<uint8_t>(value));
  return true;
}

}  // namespace revodrive
