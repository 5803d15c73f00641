// SPDX-License-Identifier: GPL-2.0-or-later
//
// Writes JSON in the layout of fio's: two spaces a level, "key" : value, real numbers with six
// digits. The caller opens and closes in order; commas come by themselves.
#ifndef REVODRIVE_SIM_JSON_WRITER_H
#define REVODRIVE_SIM_JSON_WRITER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace revodrive::sim {

class JsonWriter {
 public:
  void open(std::string_view key = {}) { begin(key, '{'); }
  void close() { end('}'); }
  void open_array(std::string_view key) { begin(key, '['); }
  void close_array() { end(']'); }

  void put(std::string_view key, std::string_view text);
  void put(std::string_view key, const char *text) { put(key, std::string_view(text)); }
  void put(std::string_view key, const std::string &text) { put(key, std::string_view(text)); }
  void put(std::string_view key, double value);
  void put(std::string_view key, uint64_t value);
  void put(std::string_view key, int64_t value);
  void put(std::string_view key, unsigned value) { put(key, uint64_t{value}); }
  void put(std::string_view key, int value) { put(key, int64_t{value}); }

  // The document, with a line feed at its end.
  std::string text() const { return text_ + "\n"; }

 private:
  void begin(std::string_view key, char bracket);
  void end(char bracket);
  void start(std::string_view key);
  void quote(std::string_view text);

  std::string text_;
  std::vector<bool> any_;  // of each open level: something is in it
};

}  // namespace revodrive::sim
#endif
