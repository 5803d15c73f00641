// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/job.h"

#include <algorithm>

namespace revodrive::sim {

Job::Job(const JobOptions &options, JobParts parts)
    : options_(options),
      parts_(std::move(parts)),
      data_(options.buffer, options.block_min[static_cast<unsigned>(Op::kWrite)], parts_.seed),
      requests_(options.depth),
      loops_left_(options.loops) {
  has_buffers_ = options.direction.writes || !options.replay.log.empty();
  for (size_t i = requests_.size(); i-- > 0;) {
    IoRequest &request = requests_[i];
    request.job = this;
    request.buffer = parts_.buffers + i * parts_.buffer_bytes;
    if (has_buffers_)
      data_.fill({parts_.host.memory(request.buffer), parts_.buffer_bytes});
    free_.push_back(&request);
  }
  sync_.job = this;
  sync_.op = Op::kFlush;
}

void Job::start(int64_t at_ns) {
  state_ = State::kRunning;
  start_ns_ = cpu_free_ns_ = wake_ns_ = at_ns;
  parts_.pacer->start(at_ns);
  count_from_ns_ = at_ns + options_.ramp_ns;
  ramping_ = options_.ramp_ns > 0;
  if (options_.runtime_ns > 0)
    end_ns_ = count_from_ns_ + options_.runtime_ns;
  stats_.begin(count_from_ns_);
}

void Job::stop() {
  if (state_ == State::kWaiting)
    state_ = State::kDone;
  if (state_ != State::kRunning)
    return;
  end_ns_ = parts_.host.now_ns();
  fetched_ = false;
  wake_ns_ = parts_.host.now_ns();
}

void Job::pump() {
  int64_t now_ns = parts_.host.now_ns();
  while (state_ == State::kRunning) {
    wake_ns_ = RD_NEVER;
    if (syncing_)
      return;
    if (!fetched_) {
      bool enough = options_.number_ios != 0 && issued_ >= options_.number_ios;
      if (over(now_ns) || enough)
        return drain(now_ns);
      if (free_.empty() || think(now_ns))
        return;
      if (!fetch())
        return drain(now_ns);
      int64_t ready_ns = std::max(start_ns_ + next_.not_before_ns, now_ns);
      if (parts_.pacer->active())
        ready_ns = std::max(ready_ns, parts_.pacer->take(next_));
      issue_at_ns_ = charge_cpu(ready_ns, parts_.cost.submit_ns);
    }
    // An I/O that was due after the end is not issued any more.
    if (over(now_ns)) {
      fetched_ = false;
      return drain(now_ns);
    }
    if (issue_at_ns_ > now_ns) {
      wake_ns_ = std::min(issue_at_ns_, end_ns_);
      return;
    }
    issue(now_ns);
  }
}

// True: the job waits now. fio lets everything in flight come back before it thinks.
bool Job::think(int64_t now_ns) {
  if (options_.think_ns == 0 || since_thinking_ < options_.think_blocks)
    return false;
  if (in_flight_ > 0)
    return true;
  if (think_until_ns_ == 0)
    think_until_ns_ = std::max(now_ns, cpu_free_ns_) + options_.think_ns;
  if (think_until_ns_ > now_ns) {
    wake_ns_ = std::min(think_until_ns_, end_ns_);
    return true;
  }
  think_until_ns_ = 0;
  since_thinking_ = 0;
  return false;
}

bool Job::fetch() {
  fetched_ = parts_.source->next(next_);
  if (!fetched_ && (options_.time_based || --loops_left_ > 0)) {
    parts_.source->rewind();
    fetched_ = parts_.source->next(next_);
  }
  return fetched_;
}

int64_t Job::charge_cpu(int64_t earliest_ns, int64_t cost_ns) {
  int64_t end_ns = std::max(earliest_ns, cpu_free_ns_) + cost_ns;
  if (cost_ns > 0)
    cpu_free_ns_ = end_ns;
  return end_ns;
}

void Job::issue(int64_t now_ns) {
  fetched_ = false;
  if (next_.recorded) {
    int64_t late_ns = now_ns - start_ns_ - next_.not_before_ns;
    stats_.replayed++;
    stats_.late_sum_ns += late_ns;
    stats_.late_max_ns = std::max(stats_.late_max_ns, late_ns);
    stats_.late_last_ns = late_ns;
  }
  if (next_.op == Op::kFlush)
    return issue_sync(now_ns, next_.target);
  IoRequest &io = *free_.back();
  free_.pop_back();
  io.op = next_.op;
  io.offset = next_.offset;
  io.bytes = next_.bytes;
  io.target = next_.target;
  io.issue_ns = now_ns;
  io.start_ns = now_ns - parts_.cost.submit_ns;
  if (io.op == Op::kWrite) {
    data_.prepare({parts_.host.memory(io.buffer), io.bytes}, io.offset, now_ns);
    writes_since_sync_++;
  }
  if (parts_.log)
    parts_.log->issued(io, now_ns - start_ns_);
  in_flight_++;
  issued_++;
  since_thinking_++;
  if (now_ns >= count_from_ns_)
    stats_.count_depth(in_flight_);
  parts_.blocks.submit(io, *parts_.targets[io.target]);
  if (options_.sync_every != 0 && writes_since_sync_ >= options_.sync_every)
    issue_sync(now_ns, io.target);
}

// A sync blocks the thread until it is done; what is in flight goes on.
void Job::issue_sync(int64_t now_ns, uint8_t target) {
  writes_since_sync_ = 0;
  syncing_ = true;
  sync_.target = target;
  sync_.start_ns = sync_.issue_ns = now_ns;
  if (parts_.log)
    parts_.log->issued(sync_, now_ns - start_ns_);
  parts_.blocks.submit(sync_, *parts_.targets[target]);
}

void Job::completed(IoRequest &io) {
  int64_t done_ns = charge_cpu(parts_.host.now_ns(), parts_.cost.complete_ns);
  // Without a cost the processor is never in the way.
  if (parts_.cost.complete_ns == 0)
    done_ns = parts_.host.now_ns();
  if (io.failed) {
    stats_.errors++;
    end_ns_ = std::min(end_ns_, done_ns);
  }
  if (ramping_ && done_ns >= count_from_ns_)
    ramping_ = false;
  if (!ramping_)
    count(io, done_ns);
  if (&io == &sync_) {
    syncing_ = false;
  } else {
    done_bytes_ += io.bytes;
    in_flight_--;
    free_.push_back(&io);
  }
  if (state_ == State::kRunning)
    wake_ns_ = parts_.host.now_ns();
  else if (state_ == State::kDraining)
    drain(parts_.host.now_ns());
}

void Job::count(const IoRequest &io, int64_t done_ns) {
  stats_.end_ns = std::max(stats_.end_ns, done_ns);
  if (io.op == Op::kFlush)
    return stats_.syncs.add(done_ns - io.issue_ns);
  stats_.directions[static_cast<unsigned>(io.op)].add(io.bytes, io.issue_ns - io.start_ns,
                                                      done_ns - io.issue_ns, done_ns);
}

double Job::done_share() const {
  if (state_ == State::kDone || state_ == State::kWaiting)
    return state_ == State::kDone ? 1 : 0;
  auto share = [](auto part, auto whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  double by_time = 0;
  if (options_.runtime_ns > 0)
    by_time = share(parts_.host.now_ns() - start_ns_, options_.ramp_ns + options_.runtime_ns);
  double by_bytes = options_.time_based ? 0 : share(done_bytes_, parts_.planned_bytes);
  double by_ios = share(issued_, options_.number_ios);
  return std::clamp(std::max({by_time, by_bytes, by_ios}), 0.0, 1.0);
}

// No further I/O; the last sync when everything is back.
void Job::drain(int64_t now_ns) {
  state_ = State::kDraining;
  wake_ns_ = RD_NEVER;
  if (in_flight_ > 0 || syncing_)
    return;
  if (options_.sync_at_end && last_syncs_ < parts_.targets.size())
    return issue_sync(now_ns, last_syncs_++);
  stats_.wrapped = parts_.source->wrapped();
  state_ = State::kDone;
}

}  // namespace revodrive::sim
