// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/dedupe_window.h"

namespace revodrive {

void DedupeWindow::save(StreamWriter &out) const {
  out.section("DEDU");
  out.put(static_cast<uint32_t>(places_.size()));
  for (const ContentHash &hash : places_) {
    out.put(hash.low);
    out.put(hash.high);
  }
}

void DedupeWindow::load(StreamReader &in) {
  in.section("DEDU");
  if (in.get<uint32_t>() != places_.size())
    in.fail();
  for (ContentHash &hash : places_) {
    in.get(hash.low);
    in.get(hash.high);
  }
  if (!in.ok())
    forget();
}

}  // namespace revodrive
