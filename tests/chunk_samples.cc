// SPDX-License-Identifier: GPL-2.0-or-later
#include "chunk_samples.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include <check.h>  // after the library, whose fail() it would replace

namespace revodrive::test {

namespace {

constexpr size_t kMany = 60;

Bytes file(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  ck_assert_msg(in.good(), "cannot read \"%s\", which this test takes data from", path.c_str());
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

// What libc of this process is mapped from.
std::string libc_path() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/libc.so.6") != std::string::npos || line.find("/libc-") != std::string::npos)
      return line.substr(line.find('/'));
  return {};
}

// Chunks of the data, in step with 4 KiB as in a file system.
std::vector<Bytes> pieces(Random &random, const Bytes &data) {
  ck_assert_uint_ge(data.size(), kChunk);
  std::vector<Bytes> chunks(kMany);
  for (Bytes &chunk : chunks) {
    size_t at = random() % (data.size() / kChunk) * kChunk;
    chunk.assign(&data[at], &data[at] + kChunk);
  }
  return chunks;
}

std::vector<Bytes> made(const std::function<Bytes()> &make) {
  std::vector<Bytes> chunks(kMany);
  std::generate(chunks.begin(), chunks.end(), make);
  return chunks;
}

Bytes files(std::initializer_list<const char *> paths) {
  Bytes all;
  for (const char *path : paths) {
    Bytes one = file(path);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

Bytes cut(const std::string &text) {
  return Bytes(text.begin(), text.begin() + kChunk);
}

Bytes json(Random &random) {
  std::string text;
  while (text.size() < kChunk)
    text += "  {\"id\": " + std::to_string(random() % 100000) + ", \"name\": \"user" +
            std::to_string(random() % 500) +
            "\", \"active\": " + (random() % 2 ? "true" : "false") +
            ", \"score\": " + std::to_string(random() % 1000) + ".5},\n";
  return cut(text);
}

Bytes log_lines(Random &random) {
  static const char *const kWhat[] = {
      "kernel: mvsas: phy attached", "sshd: session opened for root",
      "systemd: Started daily cleanup", "cron: (root) CMD (run-parts)"};
  std::string text;
  uint64_t time = random() % 1000000;
  while (text.size() < kChunk)
    text += "Nov 30 12:" + std::to_string((time += random() % 50) % 6000) + " host[" +
            std::to_string(random() % 40000) + "] " + kWhat[random() % 4] + "\n";
  return cut(text);
}

Bytes digits(Random &random, const char *alphabet, size_t size, size_t line) {
  Bytes chunk(kChunk);
  for (size_t i = 0; i < kChunk; i++)
    chunk[i] = i % line == line - 1 ? '\n' : static_cast<uint8_t>(alphabet[random() % size]);
  return chunk;
}

Bytes wide(const Bytes &text) {
  Bytes chunk(kChunk);
  for (size_t i = 0; i < kChunk / 2; i++)
    chunk[2 * i] = text[i];
  return chunk;
}

// A gradient with some noise, rows of any width.
Bytes gradient(Random &random) {
  Bytes chunk(kChunk);
  size_t width = 50 + random() % 2000, grain = 1 + random() % 16;
  uint64_t right = random() % 8, down = random() % 5, first = random();
  for (size_t i = 0; i < kChunk; i++)
    chunk[i] =
        static_cast<uint8_t>(first + i % width * right / 4 + i / width * down + random() % grain);
  return chunk;
}

Bytes rgb(Random &random) {
  Bytes chunk(kChunk);
  uint8_t color[3] = {static_cast<uint8_t>(random()), static_cast<uint8_t>(random()), 77};
  size_t grain = 1 + random() % 12;
  for (size_t i = 0; i < kChunk; i++) {
    if (i % 3 == 0 && random() % 8 == 0)
      color[random() % 3] = static_cast<uint8_t>(color[random() % 3] + random() % 9);
    chunk[i] = static_cast<uint8_t>(color[i % 3] + random() % grain);
  }
  return chunk;
}

// A page of a database: slots at its end, records with a key, numbers and text, some of it free.
Bytes database_page(Random &random) {
  Bytes page(kChunk);
  size_t record = 24 + random() % 100, slots = 100 + random() % 400;
  auto key = static_cast<uint32_t>(random());
  for (size_t at = 32; at + record < kChunk - slots; at += record) {
    key += random() % 10;
    std::memcpy(&page[at], &key, sizeof(key));
    for (size_t i = 8; i < record; i++)
      page[at + i] = i < 16 ? static_cast<uint8_t>(random() % 100) : "eatoin shrdlu"[random() % 13];
  }
  for (size_t i = 0; i < slots; i += 2)
    page[kChunk - 1 - i] = static_cast<uint8_t>(i / 16),
                      page[kChunk - 2 - i] = static_cast<uint8_t>(i);
  return page;
}

Bytes sparse(Random &random) {
  Bytes chunk(kChunk);
  for (size_t left = 1 + random() % 40; left > 0; left--)
    chunk[random() % kChunk] = static_cast<uint8_t>(random());
  return chunk;
}

Bytes repeated(Random &random) {
  size_t distance = 1 + random() % 3000;
  Bytes chunk = noise(random, kChunk);
  for (size_t i = distance; i < kChunk; i++)
    chunk[i] = chunk[i - distance];
  return chunk;
}

// Noise with some copies of pieces of itself.
Bytes with_copies(Random &random) {
  Bytes chunk = noise(random, kChunk);
  for (unsigned i = 0; i < 20; i++) {
    size_t from = random() % 2000, to = 2000 + random() % 2000;
    std::memmove(&chunk[to], &chunk[from], 8 + random() % 60);
  }
  return chunk;
}

Bytes packed(const Bytes &data) {
  Bytes out(ZSTD_compressBound(data.size()));
  size_t size = ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 19);
  ck_assert(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

// The first part of one, the rest of another.
Bytes joined(Random &random, const std::vector<Samples> &samples) {
  const auto &one = samples[random() % samples.size()].chunks;
  const auto &two = samples[random() % samples.size()].chunks;
  Bytes chunk = one[random() % one.size()];
  const Bytes &rest = two[random() % two.size()];
  size_t at = 512 * (1 + random() % 7);
  std::copy(rest.begin() + static_cast<ptrdiff_t>(at), rest.end(),
            chunk.begin() + static_cast<ptrdiff_t>(at));
  return chunk;
}

std::vector<Samples> real_data(Random &random) {
  Bytes english = files({"/usr/share/common-licenses/GPL-2", "/usr/share/common-licenses/GPL-3",
                         "/usr/share/common-licenses/Artistic"});
  Bytes source = files({"/usr/include/stdio.h", "/usr/include/stdlib.h", "/usr/include/string.h",
                        "/usr/include/elf.h", "/usr/include/unistd.h", "/usr/include/zstd.h"});
  Bytes libc = file(libc_path()), own = file("/proc/self/exe");
  std::vector<Samples> all = {{"English", pieces(random, english)},
                              {"source code", pieces(random, source)},
                              {"libc", pieces(random, libc)},
                              {"this program", pieces(random, own)},
                              {"compressed file", pieces(random, packed(libc))}};
  Samples utf16{"UTF-16", {}};
  for (const Bytes &text : all[0].chunks)
    utf16.chunks.push_back(wide(text));
  all.push_back(std::move(utf16));
  return all;
}

}  // namespace

Bytes noise(Random &random, size_t size) {
  Bytes bytes(size);
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  return bytes;
}

Bytes fio_mixed(Random &random, unsigned compressible_percent) {
  Bytes chunk = noise(random, kChunk);
  size_t zeros = kChunk * compressible_percent / 100;
  std::memset(chunk.data() + kChunk - zeros, 0, zeros);
  return chunk;
}

Bytes fio_scrambled(Random &random, unsigned uses) {
  constexpr size_t kSector = 512;
  Bytes chunk = noise(random, kChunk);
  uint64_t nanoseconds = random() % 1'000'000'000;
  for (unsigned i = 0; i < uses; i++) {
    nanoseconds += 1'000'000 + random() % 100'000;
    uint64_t offset = random() % (1 << 22) * kChunk;
    uint64_t time[2] = {100 + nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    size_t place = random() % 8 * 64;
    for (size_t at = 0; at < kChunk; at += kSector, offset += kSector) {
      std::memcpy(&chunk[at + place], &offset, sizeof(offset));
      std::memcpy(&chunk[at + 48], time, sizeof(time));
    }
  }
  return chunk;
}

std::vector<Samples> all_samples(Random &random) {
  static const char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<Samples> all = real_data(random);
  all.push_back({"JSON", made([&] { return json(random); })});
  all.push_back({"log", made([&] { return log_lines(random); })});
  all.push_back({"base64", made([&] { return digits(random, kBase64, 64, 77); })});
  all.push_back({"hexadecimal", made([&] { return digits(random, "0123456789abcdef", 16, 65); })});
  all.push_back({"gradient", made([&] { return gradient(random); })});
  all.push_back({"RGB", made([&] { return rgb(random); })});
  all.push_back({"database page", made([&] { return database_page(random); })});
  all.push_back({"zeros", made([] { return Bytes(kChunk); })});
  all.push_back({"sparse", made([&] { return sparse(random); })});
  all.push_back({"random", made([&] { return noise(random, kChunk); })});
  all.push_back({"repeats", made([&] { return repeated(random); })});
  all.push_back({"copies in noise", made([&] { return with_copies(random); })});
  for (unsigned uses : {1, 3, 10, 30, 100, 300, 1000})
    all.push_back(
        {"scrambled " + std::to_string(uses), made([&] { return fio_scrambled(random, uses); })});
  all.push_back({"joined", made([&] { return joined(random, all); })});
  return all;
}

std::vector<Samples> tails(Random &random, std::vector<Samples> samples) {
  for (Samples &kind : samples) {
    kind.name += ", tails";
    for (Bytes &chunk : kind.chunks)
      chunk.resize(512 * (1 + random() % 7));
  }
  return samples;
}

}  // namespace revodrive::test
