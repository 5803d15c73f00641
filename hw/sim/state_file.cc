// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/state_file.h"

#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/job_file.h"
#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

constexpr char kMagic[8] = {'R', 'E', 'V', 'O', 'S', 'I', 'M', '1'};
constexpr uint64_t kMostBytes = uint64_t{8} << 30;

uint64_t checksum(const std::string &bytes, size_t from) {
  uint64_t hash = 0xCBF29CE484222325;
  for (size_t i = from; i < bytes.size(); i++)
    hash = (hash ^ static_cast<uint8_t>(bytes[i])) * 0x100000001B3;
  return hash;
}

template <typename T>
void put(std::string &bytes, T value) {
  char raw[sizeof(value)];
  std::memcpy(raw, &value, sizeof(value));
  bytes.append(raw, sizeof(raw));
}

// Reads what put() wrote; short input leaves zeros, and the checksum has been checked by then.
class Reader {
 public:
  Reader(const std::string &bytes, size_t at) : bytes_(bytes), at_(at) {}
  template <typename T>
  T get() {
    T value{};
    if (bytes_.size() - at_ >= sizeof(value)) {
      std::memcpy(&value, &bytes_[at_], sizeof(value));
      at_ += sizeof(value);
    }
    return value;
  }
  std::string_view take(size_t count) {
    std::string_view piece = std::string_view(bytes_).substr(at_, count);
    at_ += piece.size();
    return piece;
  }
  std::string_view rest() { return take(bytes_.size() - at_); }

 private:
  const std::string &bytes_;
  size_t at_;
};

std::vector<uint8_t> unpack(std::string_view packed, uint64_t size, const std::string &path) {
  if (size > kMostBytes)
    refuse("--state=%s: is damaged: a state of %llu bytes", path.c_str(),
           static_cast<unsigned long long>(size));
  std::vector<uint8_t> bytes(size);
  size_t got = ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != size)
    refuse("--state=%s: is damaged: %s", path.c_str(),
           ZSTD_isError(got) ? ZSTD_getErrorName(got) : "too short");
  return bytes;
}

// What a chain of symbolic links ends in, also if that is not there.
std::string link_target(const std::string &path) {
  constexpr int kMostLinks = 40;  // Linux's own limit
  std::filesystem::path target = path;
  std::error_code none;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, none); i++)
    target = target.parent_path() / std::filesystem::read_symlink(target, none);
  return target.string();
}

}  // namespace

std::string encode_state(const SavedState &state) {
  std::string body;
  put(body, static_cast<uint32_t>(state.profile.size()));
  body += state.profile;
  put(body, state.members);
  put(body, state.member_bytes);
  put(body, state.now_ns);
  put(body, uint64_t{state.card.size()});
  size_t head = body.size();
  body.resize(head + ZSTD_compressBound(state.card.size()));
  size_t packed =
      ZSTD_compress(&body[head], body.size() - head, state.card.data(), state.card.size(), 1);
  if (ZSTD_isError(packed))
    refuse("the state cannot be compressed: %s", ZSTD_getErrorName(packed));
  body.resize(head + packed);
  std::string bytes(kMagic, sizeof(kMagic));
  put(bytes, checksum(body, 0));
  return bytes + body;
}

SavedState decode_state(const std::string &bytes, const std::string &path) {
  constexpr size_t kHead = sizeof(kMagic) + sizeof(uint64_t);
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    refuse("--state=%s: is no state of revosim", path.c_str());
  Reader in(bytes, sizeof(kMagic));
  if (in.get<uint64_t>() != checksum(bytes, kHead))
    refuse("--state=%s: is damaged: its checksum is wrong", path.c_str());
  SavedState state;
  state.profile = in.take(in.get<uint32_t>());
  state.members = in.get<uint32_t>();
  state.member_bytes = in.get<uint64_t>();
  state.now_ns = in.get<int64_t>();
  auto size = in.get<uint64_t>();
  state.card = unpack(in.rest(), size, path);
  return state;
}

StateFile::StateFile(const std::string &path, OutputFiles &all)
    : path_(path), target_(link_target(path)) {
  std::string what = "--state=" + path;
  struct stat status = {};
  if (stat(target_.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode))
      refuse("%s: must be a regular file, or none yet", what.c_str());
    if (access(target_.c_str(), W_OK) != 0)
      refuse("%s: cannot be written: %s", what.c_str(), std::strerror(errno));
    there_ = true;
    mode_ = status.st_mode & 07777;
  }
  all.claim(what, target_);
  fresh_ = std::make_unique<OutputFile>(what, target_ + ".new", all);
}

bool StateFile::load(Simulation &simulation) const {
  if (!there_)
    return false;
  SavedState state = decode_state(file_text(target_), path_);
  const HostSetup &setup = simulation.setup();
  auto big = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  if (state.profile != setup.profile || state.members != setup.members ||
      state.member_bytes != setup.member_bytes)
    refuse(
        "--state=%s: is of profile %s with %u SSDs of %llu bytes, this run has profile %s with %u "
        "of %llu",
        path_.c_str(), state.profile.c_str(), state.members, big(state.member_bytes),
        setup.profile.c_str(), setup.members, big(setup.member_bytes));
  try {
    simulation.host().load(state.card, state.now_ns);
  } catch (const UserError &error) {
    refuse("--state=%s: %s (--placement=%s)", path_.c_str(), error.what(),
           simulation.placement().c_str());
  }
  return true;
}

void StateFile::store(Simulation &simulation) {
  const HostSetup &setup = simulation.setup();
  fresh_->write(encode_state({setup.profile, setup.members, setup.member_bytes, simulation.now_ns(),
                              simulation.host().save()}));
  fresh_->replace(target_, mode_);
}

}  // namespace revodrive::sim
