// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/iolog.h"

#include <algorithm>

#include "sim/job_file.h"
#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::string_view word : split(line, ' ')) {
    if (!trimmed(word).empty())
      words.push_back(trimmed(word));
  }
  return words;
}

class TraceParser {
 public:
  TraceParser(const std::string &path) { trace_.path = path; }
  Trace parse(std::string_view text);

 private:
  void header(std::string_view line);
  void line(std::string_view text);
  void action(std::string_view file, std::string_view name, const Words &rest);
  void transfer(std::string_view file, Op op, const Words &rest);
  uint8_t file_number(std::string_view name);
  uint64_t number(std::string_view text, const char *what);
  [[noreturn]] void bad(const std::string &problem) const {
    refuse("%s:%u: %s", trace_.path.c_str(), line_, problem.c_str());
  }

  Trace trace_;
  unsigned version_ = 0;
  uint32_t line_ = 0;
  int64_t at_ns_ = 0;
};

Trace TraceParser::parse(std::string_view text) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line_++;
    if (line_ == 1)
      header(line);
    else if (!line.empty())
      this->line(line);
  }
  if (trace_.entries.empty())
    refuse("%s: the log has no read, write, trim or sync", trace_.path.c_str());
  return std::move(trace_);
}

void TraceParser::header(std::string_view line) {
  if (line == "fio version 2 iolog")
    version_ = 2;
  else if (line == "fio version 3 iolog")
    version_ = 3;
  else
    bad("the first line must be 'fio version 2 iolog' or 'fio version 3 iolog'; blktrace files and "
        "version 1 are not read");
}

uint64_t TraceParser::number(std::string_view text, const char *what) {
  auto value = parse_number(text);
  if (!value || *value > INT64_MAX / kNsPerUs)
    bad(std::string(what) + " '" + std::string(text) + "' is not a number");
  return *value;
}

void TraceParser::line(std::string_view text) {
  Words words = words_of(text);
  if (version_ == 3) {
    int64_t at_ns = static_cast<int64_t>(number(words[0], "time")) * kNsPerUs;
    if (at_ns < at_ns_)
      bad("time " + std::string(words[0]) + " us is before that of the line above");
    at_ns_ = at_ns;
    words.erase(words.begin());
  }
  if (words.size() < 2)
    bad("'" + std::string(text) + "': a line is a file and an action, and what belongs to it");
  action(words[0], words[1], Words(words.begin() + 2, words.end()));
}

void TraceParser::action(std::string_view file, std::string_view name, const Words &rest) {
  if (name == "add" || name == "open" || name == "close") {
    file_number(file);
  } else if (name == "read") {
    transfer(file, Op::kRead, rest);
  } else if (name == "write") {
    transfer(file, Op::kWrite, rest);
  } else if (name == "trim") {
    transfer(file, Op::kTrim, rest);
  } else if (name == "sync" || name == "datasync") {
    trace_.entries.push_back({0, at_ns_, 0, line_, Op::kFlush, file_number(file)});
  } else if (name == "wait" && version_ == 2) {
    if (rest.empty())
      bad("wait needs a time in us");
    at_ns_ += static_cast<int64_t>(number(rest[0], "wait")) * kNsPerUs;
  } else {
    bad("action '" + std::string(name) + "' is unknown; there are add, open, close, read, write, " +
        "trim, sync, datasync" + (version_ == 2 ? ", wait" : ""));
  }
}

void TraceParser::transfer(std::string_view file, Op op, const Words &rest) {
  if (rest.size() != 2)
    bad("a read, write or trim needs an offset and a length");
  uint64_t bytes = number(rest[1], "length");
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (bytes == 0 || bytes > kMost || bytes % RD_SECTOR_BYTES != 0)
    bad("length " + std::string(rest[1]) + ": must be a multiple of 512 from 512 to 1 GiB");
  trace_.entries.push_back({number(rest[0], "offset"), at_ns_, static_cast<uint32_t>(bytes), line_,
                            op, file_number(file)});
  if (op != Op::kTrim)
    trace_.longest_bytes = std::max(trace_.longest_bytes, bytes);
}

uint8_t TraceParser::file_number(std::string_view name) {
  auto found = std::find(trace_.files.begin(), trace_.files.end(), name);
  if (found == trace_.files.end()) {
    if (trace_.files.size() > UINT8_MAX)
      bad("more than 256 files");
    found = trace_.files.emplace(found, name);
  }
  return static_cast<uint8_t>(found - trace_.files.begin());
}

class IologSource final : public IoSource {
 public:
  IologSource(const Replay &replay, Trace trace) : replay_(replay), trace_(std::move(trace)) {}
  void place(const std::vector<Placement *> &targets);
  bool next(NextIo &io) override;
  // Another round goes on where this one ends.
  void rewind() override {
    base_ns_ += trace_.entries.back().at_ns;
    at_ = 0;
  }
  uint64_t wrapped() const override { return wrapped_; }

 private:
  Replay replay_;
  Trace trace_;
  size_t at_ = 0;
  int64_t base_ns_ = 0;
  uint64_t wrapped_ = 0;
  std::vector<bool> moved_;
};

// Scales and aligns each entry and sees to it that it lies inside its target.
void IologSource::place(const std::vector<Placement *> &targets) {
  moved_.resize(trace_.entries.size());
  for (size_t i = 0; i < trace_.entries.size(); i++) {
    TraceEntry &entry = trace_.entries[i];
    entry.at_ns = entry.at_ns / replay_.time_scale * 100;
    if (entry.op == Op::kFlush)
      continue;
    entry.offset /= replay_.scale;
    if (replay_.align)
      entry.offset -= entry.offset % replay_.align;
    const char *path = trace_.path.c_str();
    auto offset = static_cast<unsigned long long>(entry.offset);
    uint64_t size = targets[entry.file]->bytes();
    if (entry.offset % RD_SECTOR_BYTES != 0)
      refuse("%s:%u: offset %llu is not a multiple of 512; replay_align=512 would make it one",
             path, entry.line, offset);
    if (entry.bytes <= size && entry.offset <= size - entry.bytes)
      continue;
    if (!replay_.wrap || entry.bytes > size)
      refuse(
          "%s:%u: offset %llu and length %u are beyond the end of %s, which has %llu bytes; "
          "replay_scale, or replay_wrap=1, would bring them inside",
          path, entry.line, offset, entry.bytes, trace_.files[entry.file].c_str(),
          static_cast<unsigned long long>(size));
    uint64_t room = size - entry.bytes + RD_SECTOR_BYTES;
    entry.offset = entry.offset % room / RD_SECTOR_BYTES * RD_SECTOR_BYTES;
    moved_[i] = true;
  }
}

bool IologSource::next(NextIo &io) {
  if (at_ == trace_.entries.size())
    return false;
  const TraceEntry &entry = trace_.entries[at_];
  wrapped_ += moved_[at_];
  at_++;
  io.op = entry.op;
  io.target = entry.file;
  io.bytes = entry.bytes;
  io.offset = entry.offset;
  io.recorded = !replay_.no_stall;
  io.not_before_ns = replay_.no_stall ? 0 : base_ns_ + entry.at_ns;
  return true;
}

class IologWriter final : public IssueLog {
 public:
  IologWriter(const std::string &what, const std::string &path,
              const std::vector<std::string> &files, OutputFiles &all)
      : file_(what, path, all), files_(files) {}
  void issued(const IoRequest &io, int64_t since_start_ns) override {
    constexpr const char *kActions[] = {"read", "write", "trim", "sync"};
    begin();
    last_us_ = since_start_ns / kNsPerUs;
    file_.print("%lld %s %s %llu %u\n", static_cast<long long>(last_us_), files_[io.target].c_str(),
                kActions[static_cast<unsigned>(io.op)],
                static_cast<unsigned long long>(io.op == Op::kFlush ? 0 : io.offset),
                io.op == Op::kFlush ? 0 : io.bytes);
  }
  void finish() override {
    begin();
    for (const std::string &name : files_)
      file_.print("%lld %s close\n", static_cast<long long>(last_us_), name.c_str());
    file_.close();
  }

 private:
  void begin() {
    if (file_.begun())
      return;
    file_.write("fio version 3 iolog\n");
    for (const char *action : {"add", "open"})
      for (const std::string &name : files_)
        file_.print("0 %s %s\n", name.c_str(), action);
  }

  OutputFile file_;
  std::vector<std::string> files_;
  int64_t last_us_ = 0;
};

}  // namespace

Trace parse_trace(std::string_view text, const std::string &path) {
  return TraceParser(path).parse(text);
}

Trace read_trace(const JobOptions &job, unsigned clone) {
  std::vector<std::string_view> paths = split(job.replay.log, ':');
  std::string path(paths[clone % paths.size()]);
  std::string text;
  try {
    text = file_text(path);
  } catch (const UserError &error) {
    refuse("%s: job '%s': read_iolog: %s", where_of(job, {"read_iolog"}), job.name.c_str(),
           error.what());
  }
  return parse_trace(text, path);
}

std::unique_ptr<IoSource> open_replay(const JobOptions &job, Trace trace, const Resolve &resolve,
                                      std::vector<Placement *> *targets) {
  for (const std::string &name : trace.files) {
    bool known = name == "card" || name.starts_with("ssd");
    if (job.replay.redirect.empty() && !known)
      refuse(
          "%s: the log has I/O for '%s'; say where it shall go: replay_redirect=card or ssd0 ...",
          trace.path.c_str(), name.c_str());
    targets->push_back(resolve(job.replay.redirect.empty() ? name : job.replay.redirect));
  }
  auto source = std::make_unique<IologSource>(job.replay, std::move(trace));
  source->place(*targets);
  return source;
}

std::unique_ptr<IssueLog> open_issue_log(const JobOptions &job, unsigned clone,
                                         const std::vector<std::string> &files, OutputFiles &all) {
  std::string path = job.write_log;
  if (job.clones > 1)
    path += "." + std::to_string(clone);
  std::string what =
      std::string(where_of(job, {"write_iolog"})) + ": job '" + job.name + "': write_iolog=" + path;
  return std::make_unique<IologWriter>(what, path, files, all);
}

}  // namespace revodrive::sim
