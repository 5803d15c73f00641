// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sequential streams of reads, and what was fetched ahead of them: pieces of units with the time at
// which each is in the controller. Anything written or trimmed in a stream's window ends it.
#ifndef REVODRIVE_SF2281_READ_AHEAD_H
#define REVODRIVE_SF2281_READ_AHEAD_H

#include <algorithm>
#include <array>
#include <cstdint>

#include "revodrive/stream.h"
#include "sf2281/nand.h"

namespace revodrive {

class ReadAhead {
 public:
  static constexpr size_t kStreams = 4;
  static constexpr uint64_t kPieces = 128;  // a power of two

  struct Stream {
    uint64_t next = UINT64_MAX;  // unit that would go on with it
    uint64_t ahead = 0;          // fetched up to here
    uint64_t used = 0;           // when it was seen last, by number of reads
    // Ring: units up to `end` that came after the piece before are ready then.
    struct Piece {
      uint64_t end = 0;
      int64_t ready_ns = 0;
    };
    std::array<Piece, kPieces> pieces;
    uint64_t first = 0, last = 0;
  };

  // The stream that a read of [first, last] goes on with; null: a new one begins. It is moved on.
  Stream *follow(uint64_t first, uint64_t last) {
    reads_++;
    for (Stream &stream : streams_) {
      if (stream.next != first && stream.next != first + 1)
        continue;
      stream.next = last + 1;
      stream.used = reads_;
      stream.ahead = std::max(stream.ahead, last + 1);
      return &stream;
    }
    auto oldest =
        std::min_element(streams_.begin(), streams_.end(),
                         [](const Stream &a, const Stream &b) { return a.used < b.used; });
    forget(*oldest);
    oldest->next = oldest->ahead = last + 1;
    oldest->used = reads_;
    return nullptr;
  }
  // When a unit that was fetched ahead is there; -1: it was not.
  static int64_t ready_ns(Stream &stream, uint64_t unit) {
    for (; stream.first != stream.last; stream.first++) {
      const auto &piece = stream.pieces[stream.first % kPieces];
      if (unit < piece.end)
        return piece.ready_ns;
    }
    return -1;
  }
  static bool full(const Stream &stream) { return stream.last - stream.first == kPieces; }
  static void add(Stream &stream, uint64_t end, int64_t ready_ns) {
    stream.pieces[stream.last++ % kPieces] = {end, ready_ns};
    stream.ahead = end;
  }
  void changed(uint64_t first, uint64_t end, uint64_t most_ahead) {
    for (Stream &stream : streams_) {
      if (stream.next == UINT64_MAX || end <= stream.next || first >= stream.next + most_ahead)
        continue;
      forget(stream);
    }
  }
  void clear() { streams_.fill({}); }

  void save(StreamWriter &out) const {
    out.put(reads_);
    for (const Stream &stream : streams_) {
      for (uint64_t value : {stream.next, stream.ahead, stream.used, stream.first, stream.last})
        out.put(value);
      for (uint64_t i = stream.first; i != stream.last; i++) {
        out.put(stream.pieces[i % kPieces].end);
        out.put(stream.pieces[i % kPieces].ready_ns);
      }
    }
  }
  void load(StreamReader &in) {
    in.get(reads_);
    for (Stream &stream : streams_) {
      for (uint64_t *value :
           {&stream.next, &stream.ahead, &stream.used, &stream.first, &stream.last})
        in.get(*value);
      if (stream.last - stream.first > kPieces)
        in.fail();
      for (uint64_t i = stream.first; in.ok() && i != stream.last; i++) {
        auto &piece = stream.pieces[i % kPieces];
        in.get(piece.end);
        in.get(piece.ready_ns);
        if (piece.ready_ns < 0 || piece.ready_ns > kLatestNs)
          in.fail();
      }
    }
    if (!in.ok())
      clear();
  }

 private:
  // All but the pieces, of which there are none then.
  static void forget(Stream &stream) {
    stream.next = UINT64_MAX;
    stream.ahead = stream.used = stream.first = stream.last = 0;
  }

  std::array<Stream, kStreams> streams_;
  uint64_t reads_ = 0;
};

}  // namespace revodrive
#endif
