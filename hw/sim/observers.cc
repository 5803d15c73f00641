// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/observers.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "sim/user_error.h"

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
  auto length_ns = static_cast<uint32_t>(std::min<int64_t>(end_ns - start_ns, UINT32_MAX));
  spans_.push_back({start_ns, length_ns, tracks_.number(track), labels_.number(label)});
}

void TimelineTrace::write(const std::string &path) const {
  struct Close {
    void operator()(FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<FILE, Close> file(std::fopen(path.c_str(), "w"));
  if (!file)
    refuse("--timeline=%s: cannot be written", path.c_str());
  std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file.get());
  std::fputs("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"card\"}}",
             file.get());
  for (size_t i = 0; i < tracks_.texts.size(); i++)
    std::fprintf(file.get(),
                 ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"name\":\"thread_name\",\"args\":"
                 "{\"name\":\"%s\"}}",
                 i + 1, tracks_.texts[i].c_str());
  for (const Span &span : spans_) {
    // Microseconds; three digits are whole nanoseconds.
    std::fprintf(file.get(),
                 ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f}",
                 span.track + 1u, labels_.texts[span.label].c_str(),
                 static_cast<double>(span.start_ns - from_ns_) / 1000, span.length_ns / 1000.0);
  }
  std::fputs("\n]}\n", file.get());
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()))
    refuse("--timeline=%s: cannot be written", path.c_str());
}

}  // namespace revodrive::sim
