// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/flash_controller.h"

#include <cassert>

#include "sf2281/model.h"

namespace revodrive {

namespace {

FlashGeometry made(const FlashProfile &profile, uint64_t sectors) {
  FlashGeometry geometry;
  rd_error error;
  [[maybe_unused]] bool ok = FlashGeometry::make(profile, sectors, &geometry, &error);
  assert(ok);
  return geometry;
}

}  // namespace

bool FlashController::check(const FlashProfile &profile, uint64_t sectors, rd_error *error) {
  FlashGeometry geometry;
  return FlashGeometry::make(profile, sectors, &geometry, error);
}

FlashController::FlashController(const FlashProfile &profile, uint64_t sectors, bool timing,
                                 const MemoryHint &memory)
    : model_(
          std::make_unique<FlashModel>(profile, made(profile, sectors), sectors, timing, memory)) {
}

FlashController::~FlashController() = default;

int64_t FlashController::command(int64_t at_ns, Journey &journey) {
  return model_->command(at_ns, journey);
}

void FlashController::idle(int64_t now_ns) {
  model_->idle(now_ns);
}

void FlashController::rest(bool resting) {
  model_->rest(resting);
}

void FlashController::expect(uint64_t lba) const {
  model_->expect(lba);
}

Span FlashController::read(int64_t at_ns, uint64_t lba, uint32_t sectors, Journey &journey) {
  return model_->read(at_ns, lba, sectors, journey);
}

int64_t FlashController::write(int64_t at_ns, uint64_t lba, uint32_t sectors,
                               std::span<const rd_iov> data, Journey &journey) {
  return model_->write(at_ns, lba, sectors, data, journey);
}

int64_t FlashController::flush(int64_t at_ns, Journey &journey) {
  return model_->flush(at_ns, journey);
}

int64_t FlashController::trim(int64_t at_ns, uint64_t lba, uint64_t sectors, Journey &journey) {
  return model_->trim(at_ns, lba, sectors, journey);
}

int64_t FlashController::erase_all(int64_t at_ns, Journey &journey) {
  return model_->erase_all(at_ns, journey);
}

void FlashController::renew(FlashPreset kind, uint64_t seed, std::span<const rd_extent> data) {
  model_->renew(kind, seed, data);
}

uint64_t FlashController::nand_bytes_written() const {
  return model_->nand_bytes_written();
}

FlashHealth FlashController::health() const {
  return model_->health();
}

void FlashController::query(const Visitor &visit) const {
  model_->query(visit);
}

void FlashController::watch(Observer *observer, const std::string &prefix) {
  model_->watch(observer, prefix);
}

void FlashController::power_cycle() {
  model_->power_cycle();
}

void FlashController::save(StreamWriter &out) const {
  model_->save(out);
}

void FlashController::load(StreamReader &in) {
  model_->load(in);
}

bool FlashController::save_persistent(StreamWriter &out, size_t most_bytes) const {
  return model_->save_persistent(out, most_bytes);
}

void FlashController::load_persistent(StreamReader &in) {
  model_->load_persistent(in);
}

const char *FlashController::check_books() const {
  return model_->check_books();
}

}  // namespace revodrive
