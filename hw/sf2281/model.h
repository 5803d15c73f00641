// SPDX-License-Identifier: GPL-2.0-or-later
//
// The parts of a FlashController and how a command meets them. A read passes the core, the map
// cache, then for each piece of data the write buffer, or a die and its channel, and the
// decompressor. A write passes the core, the compressor, the throttle, and waits for room in the
// write buffer; each full set of a die's pages goes to its queue, and garbage collection does its
// share.
//
// The translation layer (ftl.h) keeps the books, Nand and the Timelines here have the time. Reads
// are in read.cc, writes in write.cc, garbage collection and everything else about superblocks in
// stripes.cc, but for what is collected while no command comes: idle.cc. State is in
// model_state.cc, the rest in model.cc.
#ifndef REVODRIVE_SF2281_MODEL_H
#define REVODRIVE_SF2281_MODEL_H

#include <array>
#include <cstdint>
#include <vector>

#include "revodrive/flash_controller.h"
#include "sf2281/compressor.h"
#include "sf2281/ftl.h"
#include "sf2281/map_cache.h"
#include "sf2281/nand.h"
#include "sf2281/read_ahead.h"
#include "sf2281/token_bucket.h"

namespace revodrive {

class FlashModel {
 public:
  FlashModel(const FlashProfile &profile, const FlashGeometry &geometry, uint64_t sectors,
             bool timing, const MemoryHint &memory);

  int64_t command(int64_t at_ns, Journey &journey);
  void idle(int64_t now_ns);
  void rest(bool resting) { resting_ = resting; }
  void expect(uint64_t lba) const { ftl_.expect(lba * RD_SECTOR_BYTES / geometry_.unit_bytes); }
  Span read(int64_t at_ns, uint64_t lba, uint32_t sectors, Journey &journey);
  int64_t write(int64_t at_ns, uint64_t lba, uint32_t sectors, std::span<const rd_iov> data,
                Journey &journey);
  int64_t flush(int64_t at_ns, Journey &journey);
  int64_t trim(int64_t at_ns, uint64_t lba, uint64_t sectors, Journey &journey);
  int64_t erase_all(int64_t at_ns, Journey &journey);
  void renew(FlashPreset kind, uint64_t seed, std::span<const rd_extent> data);
  uint64_t nand_bytes_written() const { return nand_.counts().program_bytes; }
  FlashHealth health() const;
  void query(const FlashController::Visitor &visit) const;
  void watch(Observer *observer, const std::string &prefix);
  void power_cycle();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  bool save_persistent(StreamWriter &out, size_t most_bytes) const;
  void load_persistent(StreamReader &in);
  const char *check_books() const;

 private:
  // Pages of the host that are on their way from the write buffer to a die, in order.
  struct Leaving {
    Nand::Ticket ticket;
    uint32_t superblock = 0;
    uint32_t bytes = 0;
    uint64_t offset = 0;  // in the superblock's data
  };
  // Of an open superblock: up to where it has been handed to the dies.
  struct Stripe {
    uint64_t programmed = 0;
    int64_t ready_ns = 0;  // data that has to be read first is there
  };
  // Data that lies together in the pages of one die.
  struct Piece {
    uint32_t superblock = 0;
    uint64_t group = UINT64_MAX;  // of the superblock: the pages of one die and row
    uint32_t low = 0, high = 0;   // bytes in the group
    uint32_t first_bytes = 0;     // ... of the unit that came first
    bool empty() const { return group == UINT64_MAX; }
  };
  struct ReadState {
    explicit ReadState(int64_t now_ns) : at_ns(now_ns), ready{now_ns, now_ns} {}
    int64_t at_ns;
    uint64_t begin = 0, end = UINT64_MAX;  // bytes of the drive that are wanted
    Span ready;
    Nand::Read first{};
    Piece piece;
    uint64_t mapped = 0;  // units that hold data
    bool any = false;     // the first of it has come from flash
  };
  struct Counters {
    uint64_t unmapped_reads = 0, buffer_hits = 0, read_ahead_hits = 0, map_misses = 0;
    uint64_t host_write_bytes = 0, stored_bytes = 0, throttled_ns = 0, gc_wait_ns = 0;
    uint64_t idle_gc_units = 0, idle_gc_ns = 0;
  };

  // What the firmware's time for data is counted in, whatever the mapping unit is.
  static constexpr uint32_t kCoreBytes = 4096;
  int64_t core(int64_t at_ns, int64_t work_ns, const char *label, Journey &journey);
  int64_t pass(int64_t at_ns, int64_t latency_ns, Journey &journey) const;
  static int64_t engine_ns(uint64_t bytes, uint32_t mb_s);

  // read.cc
  Span plan_read(int64_t at_ns, uint64_t units);
  int64_t find_maps(int64_t at_ns, uint64_t first, uint64_t last, bool wait, Journey &journey);
  void read_units(ReadState &state, uint64_t first, uint64_t last, ReadAhead::Stream *stream);
  void read_unit(ReadState &state, uint32_t unit);
  Ftl::Place wanted_part(const ReadState &state, uint32_t unit, Ftl::Place place) const;
  void read_piece(ReadState &state);
  Nand::Read fetch(int64_t at_ns, const Piece &piece);
  bool buffered(const Ftl::Place &place, int64_t at_ns) const;
  void read_ahead(int64_t at_ns, ReadAhead::Stream &stream);

  // write.cc
  struct DataCursor {
    std::span<const rd_iov> data;
    size_t index = 0, used = 0;
    rd_iov take(uint64_t bytes, std::vector<uint8_t> &gathered);
  };
  int64_t write_unit(int64_t at_ns, uint32_t unit, uint64_t bytes, uint64_t unit_bytes,
                     uint64_t stored, Journey &journey);
  int64_t take_in(int64_t at_ns, uint64_t bytes, Journey &journey);
  int64_t make_room(int64_t at_ns, uint32_t bytes, Journey &journey);
  int64_t throttle(int64_t at_ns, uint64_t bytes, uint64_t stored, Journey &journey);
  void retire_leaving(int64_t at_ns);
  uint64_t unprogrammed() const;

  // stripes.cc
  uint32_t die_of(uint64_t group) const;
  void ensure_open(Ftl::Stream stream, int64_t at_ns);
  void finish(Ftl::Stream stream, int64_t at_ns);
  void erase(int64_t at_ns);
  void program_full(Ftl::Stream stream, int64_t at_ns);
  void program_rest(Ftl::Stream stream, int64_t at_ns);
  void program(Ftl::Stream stream, int64_t at_ns, uint32_t pages);
  void program_parity(Ftl::Stream stream, int64_t at_ns, uint64_t row);
  uint32_t choose_victim();
  void collect_share(int64_t at_ns);
  bool collect_one(int64_t at_ns);
  void move(uint32_t unit, int64_t at_ns);

  // idle.cc
  bool begin_idle();
  bool collect_group(int64_t at_ns);

  // model.cc, model_state.cc
  uint64_t energy_uj() const;
  void save_leaving(StreamWriter &out) const;
  void load_leaving(StreamReader &in);
  void save_stripes(StreamWriter &out) const;
  void load_stripes(StreamReader &in);
  void reset_books();

  FlashProfile profile_;
  FlashGeometry geometry_;
  uint64_t drive_bytes_;
  bool timing_;
  MemoryHint memory_;
  Compressor compressor_;
  Ftl ftl_;
  Nand nand_;
  MapCache map_cache_;
  ReadAhead read_ahead_;
  TokenBucket io_throttle_, stored_throttle_;
  Timeline core_, compress_, decompress_, store_;
  static constexpr Timeline FlashModel::*kEngines[] = {
      &FlashModel::core_, &FlashModel::compress_, &FlashModel::decompress_, &FlashModel::store_};

  std::array<Stripe, Ftl::kStreams> stripes_;
  std::vector<Leaving> leaving_;  // a ring, as large as the buffer can need
  uint64_t leaving_first_ = 0, leaving_end_ = 0;
  uint64_t leaving_bytes_ = 0;
  int64_t gc_quota_ = 0;                 // bytes that garbage collection owes
  uint64_t gc_ratio_permille_ = 0;       // what it moves for each byte it gains, of this victim
  uint64_t gc_page_ = 0;                 // page it has read last: superblock and page
  int64_t gc_ready_ns_ = 0;              // when all that it has read is there
  int64_t erased_ns_ = 0;                // when the superblock that was opened last is
  int64_t idle_ns_;                      // without a command; INT64_MAX: nothing is done then
  int64_t idle_next_ns_ = 0;             // when idle collection goes on; 0: it has not begun
  uint64_t idle_left_ = 0;               // superblocks that it may still take
  int64_t dark_ns_ = -1;                 // the power went after the command of then
  bool resting_ = false;                 // standby, sleep
  std::vector<uint8_t> gathered_;        // a unit that is scattered in memory
  int64_t first_ns_ = -1, seen_ns_ = 0;  // of the time that the drive had power
  // When idle() was called, which counts as power before the first command, too; not part of the
  // state.
  int64_t first_look_ns_ = -1, looked_ns_ = 0;
  Counters counters_;
};

}  // namespace revodrive
#endif
