// SPDX-License-Identifier: GPL-2.0-or-later
//
// Plays the files of folders, one after the other: the fuzzer's corpus as a unit test.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "play.h"

int main(int argc, char **argv) {
  unsigned played = 0;
  for (int i = 1; i < argc; i++) {
    for (const auto &entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
      std::fprintf(stderr, "%s\n", entry.path().c_str());
      revodrive::test::play(bytes);
      played++;
    }
  }
  std::printf("100%%: Checks: %u, Failures: 0, Errors: 0\n", played);
  return played == 0;
}
