// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/observers.h"

#include <algorithm>

namespace revodrive::sim {

uint16_t TimelineTrace::Names::number(const char *name) {
  auto [found, fresh] = numbers.try_emplace(name, static_cast<uint16_t>(texts.size()));
  if (fresh)
    texts.push_back(name);
  return found->second;
}

void TimelineTrace::add(const char *track, const char *label, int64_t start_ns, int64_t end_ns) {
  if (end_ns <= from_ns_ || start_ns >= to_ns_)
    return;
  if (spans_.size() == kMostSpans) {
    dropped_++;
    return;
  }
  start_ns = std::max(start_ns, from_ns_);
  end_ns = std::min(end_ns, to_ns_);
  auto length_ns = static_cast<uint32_t>(std::min<int64_t>(end_ns - start_ns, UINT32_MAX));
  spans_.push_back({start_ns, length_ns, tracks_.number(track), labels_.number(label)});
}

void TimelineTrace::write(OutputFile &file) const {
  file.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  file.write("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"card\"}}");
  for (size_t i = 0; i < tracks_.texts.size(); i++)
    file.print(
        ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}"
        "}",
        i + 1, tracks_.texts[i].c_str());
  for (const Span &span : spans_) {
    // Microseconds; three digits are whole nanoseconds.
    file.print(",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f}",
               span.track + 1u, labels_.texts[span.label].c_str(),
               static_cast<double>(span.start_ns - from_ns_) / 1000, span.length_ns / 1000.0);
  }
  file.write("\n]}\n");
  file.close();
}

}  // namespace revodrive::sim
