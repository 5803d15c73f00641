// SPDX-License-Identifier: GPL-2.0-or-later
//
// One member as the volume's firmware drives it: the initiator at the near end of a SATA link. It
// keeps the requests that want something of this member in a queue, first come first served, gives
// reads and writes to the drive as up to 32 queued commands at a time, and everything else alone,
// as the drive demands. When a queued command fails it reads the queued error log, fails the one
// to blame and gives the others to the drive again.
//
// Files: member_port.cc (life of a command), member_recovery.cc (queue errors, faults, links).
#ifndef REVODRIVE_VOLUME_MEMBER_PORT_H
#define REVODRIVE_VOLUME_MEMBER_PORT_H

#include <memory>

#include "revodrive/event_queue.h"
#include "revodrive/host_port.h"
#include "volume/block_volume.h"
#include "volume/placement.h"

namespace revodrive {

class MemberPort;

// A command for the drive; the member has one for each tag, and one for what goes alone.
struct MemberCommand {
  enum class State : uint8_t {
    kFree,
    kRunning,  // with the drive; event armed until its time has come
    kWaiting,  // its time has come, the backend has not answered yet
    kResting,  // stopped by a fault rule
    kStopped,  // fell with the drive's queue: waits for the error log
  };

  MemberCommand(MemberPort &owner, uint8_t number, EventQueue &queue, Event::Action due)
      : port(owner), tag(number), event(queue, due, this) {}

  MemberPort &port;
  const uint8_t tag;
  State state = State::kFree;
  VolumeRequest *request = nullptr;  // null: the port's own READ LOG
  MemberRun run;                     // what it is for; of a TRIM the first of many
  bool unsent = false;               // failed before the drive had it
  bool canceling = false;
  unsigned retries = 0;
  int64_t due_ns = 0;
  AtaCommand ata;
  SliceWindow slice;
  std::unique_ptr<BufferWindow> buffer;  // of the one that goes alone
  Event event;
};

struct MemberCounters {
  uint64_t commands = 0;
  uint64_t failed = 0;
  uint64_t retried = 0;  // fell with the queue and went again
  uint64_t losses = 0;   // the link went down or the drive went away
};

class MemberPortOwner {
 public:
  virtual Placement &placement() = 0;
  // When the firmware has made a member command of a request that it may begin at `at_ns`.
  virtual int64_t schedule(int64_t at_ns) = 0;
  // No part of the request is left in the port.
  virtual void part_done(VolumeRequest &request) = 0;
  virtual void member_late(int64_t late_ns) = 0;
  virtual bool is_ours(unsigned member, const std::array<uint8_t, RD_SECTOR_BYTES> &identity) = 0;

 protected:
  ~MemberPortOwner() = default;
};

class MemberPort final : private AtaInitiator {
 public:
  using Identity = std::array<uint8_t, RD_SECTOR_BYTES>;

  MemberPort(MemberPortOwner &owner, unsigned number, HostPort &host, EventQueue &queue,
             bool timing);
  MemberPort(const MemberPort &) = delete;
  MemberPort &operator=(const MemberPort &) = delete;

  void plug(AtaTarget &target);
  // What the drive has not done of its requests fails.
  void unplug();
  // After the drive was reset, or the volume was made: what is it?
  void inspect();
  // COMRESET, if that disturbs nobody.
  void reset_link();
  // Everything goes, without a word to anyone.
  void drop_all();

  // Takes the member's share of the request, from request.next to request.end.
  void enqueue(VolumeRequest &request);
  void cancel(VolumeRequest &request);

  // How much of the time of the request's commands has passed, of 65536.
  uint16_t progress(const VolumeRequest &request) const;

  MemberState state() const { return state_; }
  const Identity *identity() const { return identified_ ? &identity_ : nullptr; }
  const MemberCounters &counters() const { return counters_; }

  // Fault injection, as Bridge has it for a phy.
  void release(const FaultChoice &choice);
  unsigned resting(uint32_t rule) const;
  void lose_link(uint32_t rule, int64_t for_ns);
  void mend_link(uint32_t rule);
  uint32_t lost_by() const { return lost_by_; }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr uint8_t kTags = 32;
  static constexpr unsigned kMaxRetries = 8;
  using State = MemberCommand::State;

  bool usable(const VolumeRequest &request) const;
  void fail_share(VolumeRequest &request);
  uint64_t next_lba(const VolumeRequest &request);
  void pump();
  bool send_next();
  MemberCommand *free_tag();
  bool idle() const;
  void pop();
  void start(MemberCommand &command, VolumeRequest &request);
  void fill_queued(MemberCommand &command, VolumeRequest &request);
  void fill_alone(MemberCommand &command, VolumeRequest &request);
  void fill_trim(MemberCommand &command, VolumeRequest &request);
  void send(MemberCommand &command, int64_t at_ns);
  void execute(MemberCommand &command, int64_t at_ns);

  static void due(void *command);
  void finish(MemberCommand &command);
  void settle(MemberCommand &command);
  void end(MemberCommand &command, VolumeFailure failure, uint64_t lba);
  void withdraw(MemberCommand &command);
  VolumeFailure failure_of(uint8_t status, uint8_t error) const;
  uint64_t volume_lba(const MemberCommand &command, uint64_t lba);

  // AtaInitiator
  void media_ready(AtaCommand &ata) override;
  void complete_now(AtaCommand &ata) override;

  // member_recovery.cc
  void recover();
  void read_log();
  void log_read(MemberCommand &command);
  void send_stopped(uint8_t blamed, VolumeFailure failure, uint64_t lba);
  bool rests_at_fetch(MemberCommand &command);
  bool rests_at_completion(MemberCommand &command);
  void rest(MemberCommand &command, int64_t delay_ns);
  void go_on(MemberCommand &command);
  void fail_everything();

  MemberPortOwner &owner_;
  unsigned number_;
  HostPort &host_;
  bool timing_;
  AtaTarget *target_ = nullptr;
  MemberState state_ = MemberState::kMissing;
  bool identified_ = false;
  Identity identity_{};
  std::array<std::unique_ptr<MemberCommand>, kTags + 1> commands_;  // the last one goes alone
  VolumeRequest *head_ = nullptr;
  VolumeRequest *tail_ = nullptr;
  bool recovering_ = false;
  bool quiet_ = false;      // nothing may be sent now
  unsigned finishing_ = 0;  // depth of the drive's finish()
  uint32_t lost_by_ = 0;    // fault rule that keeps the link down, 0: none
  Event mend_event_;
  MemberCounters counters_;
};

}  // namespace revodrive
#endif
