// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/json_writer.h"

#include <cstdio>

namespace revodrive::sim {

void JsonWriter::start(std::string_view key) {
  if (!any_.empty()) {
    text_ += any_.back() ? ",\n" : "\n";
    any_.back() = true;
  }
  text_.append(2 * any_.size(), ' ');
  if (key.empty())
    return;
  quote(key);
  text_ += " : ";
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned char>(c));
      text_ += code;
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

void JsonWriter::begin(std::string_view key, char bracket) {
  start(key);
  text_ += bracket;
  any_.push_back(false);
}

void JsonWriter::end(char bracket) {
  bool any = any_.back();
  any_.pop_back();
  if (any) {
    text_ += '\n';
    text_.append(2 * any_.size(), ' ');
  }
  text_ += bracket;
}

void JsonWriter::put(std::string_view key, std::string_view text) {
  start(key);
  quote(text);
}

void JsonWriter::put(std::string_view key, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.6f", value);
  start(key);
  text_ += text;
}

void JsonWriter::put(std::string_view key, uint64_t value) {
  start(key);
  text_ += std::to_string(value);
}

void JsonWriter::put(std::string_view key, int64_t value) {
  start(key);
  text_ += std::to_string(value);
}

}  // namespace revodrive::sim
