// SPDX-License-Identifier: GPL-2.0-or-later
//
// The byte stream of save and load: little-endian numbers, no padding, no type information except
// the section marks that make a damaged or mismatched stream fail early. The reader trusts nothing:
// after the first failure every read returns 0 and ok() stays false, so callers check once per
// section and before they use a value as an index or size.
#ifndef REVODRIVE_STREAM_H
#define REVODRIVE_STREAM_H

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace revodrive {

class StreamWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    for (size_t i = 0; i < sizeof(T); i++)
      bytes_.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  void put_bytes(std::span<const uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // Starts a section; `mark` is four characters, e.g. "PHY ".
  void section(const char (&mark)[5]) { put_bytes({reinterpret_cast<const uint8_t *>(mark), 4}); }
  const std::vector<uint8_t> &bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

class StreamReader {
 public:
  explicit StreamReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  T get() {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    if (!take(sizeof(T)))
      return T{};
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); i++)
      value |= static_cast<uint64_t>(bytes_[pos_ - sizeof(T) + i]) << (8 * i);
    if constexpr (std::is_same_v<T, bool>)
      return value != 0;
    else
      return static_cast<T>(value);
  }
  template <typename T>
  void get(T &value) {
    value = get<T>();
  }
  void get_bytes(std::span<uint8_t> out) {
    if (take(out.size()) && !out.empty())
      std::memcpy(out.data(), bytes_.data() + pos_ - out.size(), out.size());
  }
  void section(const char (&mark)[5]) {
    if (take(4) && std::memcmp(bytes_.data() + pos_ - 4, mark, 4) != 0)
      ok_ = false;
  }
  // The next `count` bytes as a stream of their own.
  StreamReader part(size_t count) {
    return StreamReader(take(count) ? bytes_.subspan(pos_ - count, count)
                                    : std::span<const uint8_t>());
  }
  // For a value that makes no sense where it stands.
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool at_end() const { return pos_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - pos_; }

 private:
  bool take(size_t count) {
    if (!ok_ || bytes_.size() - pos_ < count) {
      ok_ = false;
      return false;
    }
    pos_ += count;
    return true;
  }

  std::span<const uint8_t> bytes_;
  size_t pos_ = 0;
  bool ok_ = true;
};

}  // namespace revodrive
#endif
