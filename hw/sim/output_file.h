// SPDX-License-Identifier: GPL-2.0-or-later
//
// A file that a run writes. It is opened before the run, so that one which cannot be written is
// noticed before time is spent on it, but keeps what it holds until the first output; closing it
// is checked. OutputFiles knows all of a run: no two may be the same file, and none a file that the
// run reads. Errors are UserErrors that name option, file and the system's reason.
#ifndef REVODRIVE_SIM_OUTPUT_FILE_H
#define REVODRIVE_SIM_OUTPUT_FILE_H

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace revodrive::sim {

class OutputFiles {
 public:
  // `what` is "--output=x": what asked for it. Refuses a file that another one asked for, by
  // whatever name. Devices and pipes may be shared. Both are remembered.
  void claim(const std::string &what, const std::string &path);
  // `what` is "job file 'x'": an input, which no output may take the place of. Before the outputs.
  void keep(const std::string &what, const std::string &path);

 private:
  struct Claim {
    std::string what;
    std::string path;  // without symbolic links
    dev_t device;
    ino_t number;  // 0: there is no file yet
    bool input;
  };
  static std::optional<Claim> claim_of(const std::string &what, const std::string &path);
  std::vector<Claim> claims_;
};

class OutputFile {
 public:
  // `what`: see OutputFiles. Creates the file if there is none.
  OutputFile(std::string what, std::string path, OutputFiles &all);
  // A file that was created here, and that nothing was written to, is removed.
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  // Something was written.
  bool begun() const { return begun_; }
  // Each ends the old contents, if it is the first. What goes wrong is kept for close().
  void write(std::string_view text);
  void print(const char *format, ...) __attribute__((format(printf, 2, 3)));

  void close();
  // close(), and the file has this mode (0: as it is) and takes the place of `path`, safe from a
  // loss of power. If that fails, it is removed.
  void replace(const std::string &path, mode_t mode);

  [[noreturn]] void refuse_now(int reason) const;

 private:
  struct Close {
    void operator()(FILE *file) const { std::fclose(file); }
  };
  void begin();
  void note(bool good);

  std::string what_;
  std::string path_;
  std::unique_ptr<FILE, Close> file_;
  bool created_ = false;
  bool begun_ = false;
  int reason_ = 0;  // errno of the first write that failed
};

}  // namespace revodrive::sim
#endif
