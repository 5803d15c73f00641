// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/host_port.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace revodrive {

namespace {

class Depth {
 public:
  explicit Depth(unsigned &depth) : depth_(depth) { depth_++; }
  ~Depth() { depth_--; }

 private:
  unsigned &depth_;
};

}  // namespace

bool HostPort::count_error(bool failed) {
  dma_errors_ += failed;
  return !failed;
}

bool HostPort::dma_read(uint64_t addr, std::span<uint8_t> to) {
  Depth depth(dma_depth_);
  bool failed = ops_.dma_read(opaque_, addr, to.data(), to.size()) != 0;
  if (failed)
    std::memset(to.data(), 0, to.size());
  return count_error(failed);
}

bool HostPort::dma_write(uint64_t addr, std::span<const uint8_t> from) {
  Depth depth(dma_depth_);
  return count_error(ops_.dma_write(opaque_, addr, from.data(), from.size()) != 0);
}

bool HostPort::dma_write_u32(uint64_t addr, uint32_t value) {
  std::array<uint8_t, 4> bytes;
  for (unsigned i = 0; i < bytes.size(); i++)
    bytes[i] = static_cast<uint8_t>(value >> (8 * i));
  return dma_write(addr, bytes);
}

void *HostPort::dma_map(uint64_t addr, size_t *len, bool to_guest) {
  Depth depth(dma_depth_);
  return ops_.dma_map(opaque_, addr, len, to_guest);
}

void HostPort::dma_unmap(void *ptr, size_t len, bool to_guest, size_t accessed) {
  Depth depth(dma_depth_);
  ops_.dma_unmap(opaque_, ptr, len, to_guest, accessed);
}

void HostPort::log(rd_log_level level, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  ops_.log(opaque_, level, text);
}

}  // namespace revodrive
