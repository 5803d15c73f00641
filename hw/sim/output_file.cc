// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/output_file.h"

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

constexpr mode_t kMode = 0666;  // less what umask takes

}  // namespace

// Nothing: what is there is no regular file.
std::optional<OutputFiles::Claim> OutputFiles::claim_of(const std::string &what,
                                                        const std::string &path) {
  std::error_code ignored;
  std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  Claim claim{what, std::filesystem::weakly_canonical(whole, ignored).string(), 0, 0, false};
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode))
      return {};
    claim.device = status.st_dev;
    claim.number = status.st_ino;
  }
  return claim;
}

void OutputFiles::claim(const std::string &what, const std::string &path) {
  std::optional<Claim> claim = claim_of(what, path);
  if (!claim)
    return;
  for (const Claim &other : claims_) {
    bool same_number = claim->number != 0 && claim->number == other.number;
    if (other.path == claim->path || (same_number && claim->device == other.device))
      refuse("%s: is the same file as %s: %s", what.c_str(), other.what.c_str(),
             other.input ? "it would be lost" : "each output needs a file of its own");
  }
  claims_.push_back(*claim);
}

void OutputFiles::keep(const std::string &what, const std::string &path) {
  std::optional<Claim> claim = claim_of(what, path);
  if (!claim)
    return;
  claim->input = true;
  claims_.push_back(*claim);
}

OutputFile::OutputFile(std::string what, std::string path, OutputFiles &all)
    : what_(std::move(what)), path_(std::move(path)) {
  int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  created_ = fd >= 0;
  // Without O_EXCL also through a symbolic link to nowhere.
  if (fd < 0 && errno == EEXIST)
    fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kMode);
  file_.reset(fd >= 0 ? fdopen(fd, "w") : nullptr);
  if (!file_)
    refuse_now(errno);
  try {
    all.claim(what_, path_);
  } catch (...) {
    if (created_)
      unlink(path_.c_str());
    throw;
  }
}

OutputFile::~OutputFile() {
  if (created_ && !begun_)
    unlink(path_.c_str());
}

void OutputFile::refuse_now(int reason) const {
  refuse("%s: cannot be written: %s", what_.c_str(), std::strerror(reason));
}

void OutputFile::note(bool good) {
  if (!good && reason_ == 0)
    reason_ = errno;
}

void OutputFile::begin() {
  if (begun_)
    return;
  begun_ = true;
  struct stat status = {};
  int fd = fileno(file_.get());
  // There is nothing to cut off a pipe or a device.
  bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  note(!regular || ftruncate(fd, 0) == 0);
}

void OutputFile::write(std::string_view text) {
  begin();
  note(std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size());
}

void OutputFile::print(const char *format, ...) {
  begin();
  va_list args;
  va_start(args, format);
  note(std::vfprintf(file_.get(), format, args) >= 0);
  va_end(args);
}

void OutputFile::close() {
  begin();
  note(std::fclose(file_.release()) == 0);
  if (reason_ != 0)
    refuse_now(reason_);
}

void OutputFile::replace(const std::string &path, mode_t mode) {
  begin();
  note(std::fflush(file_.get()) == 0);
  note(mode == 0 || fchmod(fileno(file_.get()), mode) == 0);
  note(fsync(fileno(file_.get())) == 0);
  note(std::fclose(file_.release()) == 0);
  note(reason_ == 0 && std::rename(path_.c_str(), path.c_str()) == 0);
  if (reason_ == 0)
    return;
  unlink(path_.c_str());
  refuse_now(reason_);
}

}  // namespace revodrive::sim
