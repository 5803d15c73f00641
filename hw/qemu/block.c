/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The block calls of the host interface: transfers of the members on QEMU's block layer.
 *
 * A transfer lives in a RevoRequest from submit to rd_card_block_done(). Requests are kept for
 * reuse and the I/O vector is the core's own, so the normal path allocates nothing here.
 */
#include "glue.h"

struct RevoRequest {
  QSIMPLEQ_ENTRY(RevoRequest) next;
  RevoBackend *backend;
  enum rd_block_op op;
  uint64_t offset, bytes; /* offset within the backend's node */
  uint64_t token;
  QEMUIOVector qiov;
  /* Set while a vector with more parts than a host call takes is bounced. */
  void *bounce;
  QEMUIOVector bounce_qiov;
  BlockAcctCookie acct;
  QEMUBH *ended; /* see transfer_ended() */
  int ret;
};

/* The vector of the core is handed to QEMU as it is. */
QEMU_BUILD_BUG_ON(sizeof(struct rd_iov) != sizeof(struct iovec));
QEMU_BUILD_BUG_ON(offsetof(struct rd_iov, base) != offsetof(struct iovec, iov_base));
QEMU_BUILD_BUG_ON(offsetof(struct rd_iov, len) != offsetof(struct iovec, iov_len));

static bool is_read(const RevoRequest *req) {
  return req->op == RD_BLOCK_READ;
}

static bool has_data(const RevoRequest *req) {
  return req->op == RD_BLOCK_READ || req->op == RD_BLOCK_WRITE || req->op == RD_BLOCK_WRITE_FUA;
}

void revo_backend_init(RevoBackend *backend, RevoCard *card, unsigned port, BlockBackend *blk,
                       uint64_t offset_bytes, bool discard) {
  *backend = (RevoBackend){
      .card = card,
      .port = port,
      .blk = blk,
      .offset_bytes = offset_bytes,
      .discard = discard,
  };
  QSIMPLEQ_INIT(&backend->held);
  QSIMPLEQ_INIT(&backend->unused);
}

void revo_backend_free(RevoBackend *backend) {
  RevoRequest *req;

  assert(backend->inflight == 0 && QSIMPLEQ_EMPTY(&backend->held));
  while ((req = QSIMPLEQ_FIRST(&backend->unused))) {
    QSIMPLEQ_REMOVE_HEAD(&backend->unused, next);
    qemu_bh_delete(req->ended);
    g_free(req);
  }
}

/* The request may be reused by the core from inside rd_card_block_done(), so it goes back first. */
static void finish(RevoRequest *req, int error) {
  RevoBackend *backend = req->backend;
  uint64_t token = req->token;

  QSIMPLEQ_INSERT_HEAD(&backend->unused, req, next);
  rd_card_block_done(backend->card->core, token, error);
}

static bool must_hold(const RevoBackend *backend) {
  return backend->quiesced || !backend->card->vm_running;
}

static void hold(RevoRequest *req) {
  if (req->backend->draining)
    finish(req, -ECANCELED);
  else
    QSIMPLEQ_INSERT_TAIL(&req->backend->held, req, next);
}

static void end_bounce(RevoRequest *req, bool ok) {
  if (!req->bounce)
    return;
  if (ok && is_read(req))
    qemu_iovec_from_buf(&req->qiov, 0, req->bounce, req->bytes);
  qemu_vfree(req->bounce);
  req->bounce = NULL;
}

/* What the user wants done about a failed transfer: werror= and rerror=. */
static void failed(RevoRequest *req, int error) {
  BlockBackend *blk = req->backend->blk;
  BlockErrorAction action = blk_get_error_action(blk, is_read(req), error);

  blk_error_action(blk, action, is_read(req), error);
  if (action == BLOCK_ERROR_ACTION_STOP) {
    hold(req); /* for a retry when the machine runs again */
    return;
  }
  finish(req, action == BLOCK_ERROR_ACTION_IGNORE ? 0 : -error);
}

static void conclude(void *opaque) {
  RevoRequest *req = opaque;
  RevoBackend *backend = req->backend;
  BlockAcctStats *stats = blk_get_stats(backend->blk);
  int ret = req->ret;

  if (req->op == RD_BLOCK_DISCARD && ret == -ENOTSUP)
    ret = 0; /* a discard is advice */
  end_bounce(req, ret >= 0);
  if (ret >= 0)
    block_acct_done(stats, &req->acct);
  else
    block_acct_failed(stats, &req->acct);
  backend->inflight--;
  if (ret >= 0 || ret == -ECANCELED || backend->draining)
    finish(req, MIN(ret, 0));
  else
    failed(req, -ret);
  aio_wait_kick();
}

/*
 * This may be called inside the coroutine of a request. Nothing there may wait for another request
 * (the core does, for one event or for a drain): whatever wakes that one is put off until this
 * coroutine ends. So the core is told from a bottom half.
 */
static void transfer_ended(void *opaque, int ret) {
  RevoRequest *req = opaque;

  req->ret = ret;
  qemu_bh_schedule(req->ended);
}

static RevoRequest *take_request(RevoBackend *backend) {
  RevoRequest *req = QSIMPLEQ_FIRST(&backend->unused);

  if (req) {
    QSIMPLEQ_REMOVE_HEAD(&backend->unused, next);
    return req;
  }
  req = g_new0(RevoRequest, 1);
  req->ended = qemu_bh_new(conclude, req);
  return req;
}

static enum BlockAcctType acct_type(const RevoRequest *req) {
  switch (req->op) {
    case RD_BLOCK_READ:
      return BLOCK_ACCT_READ;
    case RD_BLOCK_FLUSH:
      return BLOCK_ACCT_FLUSH;
    case RD_BLOCK_DISCARD:
      return BLOCK_ACCT_UNMAP;
    default:
      return BLOCK_ACCT_WRITE;
  }
}

/* The vector to use: the core's, or a bounce buffer where that has too many parts for one call. */
static QEMUIOVector *vector_for(RevoRequest *req) {
  if (req->qiov.niov <= IOV_MAX)
    return &req->qiov;
  req->bounce = blk_try_blockalign(req->backend->blk, req->bytes);
  if (!req->bounce)
    return NULL;
  if (!is_read(req))
    qemu_iovec_to_buf(&req->qiov, 0, req->bounce, req->bytes);
  qemu_iovec_init_buf(&req->bounce_qiov, req->bounce, req->bytes);
  return &req->bounce_qiov;
}

static void start(RevoRequest *req) {
  RevoBackend *backend = req->backend;
  BlockBackend *blk = backend->blk;
  QEMUIOVector *qiov = has_data(req) ? vector_for(req) : NULL;

  if (has_data(req) && !qiov) {
    finish(req, -ENOMEM);
    return;
  }
  backend->inflight++;
  block_acct_start(blk_get_stats(blk), &req->acct, req->bytes, acct_type(req));
  switch (req->op) {
    case RD_BLOCK_READ:
      blk_aio_preadv(blk, req->offset, qiov, 0, transfer_ended, req);
      break;
    case RD_BLOCK_WRITE:
      blk_aio_pwritev(blk, req->offset, qiov, 0, transfer_ended, req);
      break;
    case RD_BLOCK_WRITE_FUA:
      blk_aio_pwritev(blk, req->offset, qiov, BDRV_REQ_FUA, transfer_ended, req);
      break;
    case RD_BLOCK_FLUSH:
      blk_aio_flush(blk, transfer_ended, req);
      break;
    case RD_BLOCK_DISCARD:
      blk_aio_pdiscard(blk, req->offset, req->bytes, transfer_ended, req);
      break;
    case RD_BLOCK_WRITE_ZEROES:
      blk_aio_pwrite_zeroes(blk, req->offset, req->bytes, BDRV_REQ_MAY_UNMAP, transfer_ended, req);
      break;
  }
}

void revo_backend_submit(RevoBackend *backend, enum rd_block_op op, uint64_t offset, uint64_t bytes,
                         const struct rd_iov *iov, unsigned niov, uint64_t token) {
  if (op == RD_BLOCK_DISCARD && !backend->discard) {
    rd_card_block_done(backend->card->core, token, 0);
    return;
  }

  RevoRequest *req = take_request(backend);
  req->backend = backend;
  req->op = op;
  req->offset = backend->offset_bytes + offset;
  req->bytes = op == RD_BLOCK_FLUSH ? 0 : bytes;
  req->token = token;
  if (has_data(req))
    qemu_iovec_init_external(&req->qiov, (struct iovec *)iov, niov);
  if (must_hold(backend))
    hold(req);
  else
    start(req);
}

/* Only what is there at the call: a request that fails again is held for the next time. */
void revo_backend_kick(RevoBackend *backend) {
  QSIMPLEQ_HEAD(, RevoRequest) ready = QSIMPLEQ_HEAD_INITIALIZER(ready);
  RevoRequest *req;

  if (must_hold(backend))
    return;
  QSIMPLEQ_CONCAT(&ready, &backend->held);
  while ((req = QSIMPLEQ_FIRST(&ready))) {
    QSIMPLEQ_REMOVE_HEAD(&ready, next);
    start(req);
  }
}

void revo_backend_set_quiesced(RevoBackend *backend, bool quiesced) {
  backend->quiesced = quiesced;
  revo_backend_kick(backend);
}

/* Commands wait for the store of the card as for a transfer. */
static bool outstanding(const RevoBackend *backend) {
  return backend->inflight > 0 || revo_store_busy(backend->card);
}

void revo_backend_drain(RevoBackend *backend) {
  bool outermost = !backend->draining;
  RevoRequest *req;

  backend->draining = true;
  while ((req = QSIMPLEQ_FIRST(&backend->held))) {
    QSIMPLEQ_REMOVE_HEAD(&backend->held, next);
    finish(req, -ECANCELED);
  }
  do { /* a command may go from one to the other */
    if (backend->inflight) {
      blk_drain(backend->blk); /* lifts I/O limits, so it does not wait for those */
      AIO_WAIT_WHILE(blk_get_aio_context(backend->blk), backend->inflight > 0);
    }
    revo_store_wait(backend->card);
  } while (outstanding(backend));
  if (outermost)
    backend->draining = false;
}

typedef struct WaitLimit {
  QemuCoSleep sleep;
  int64_t ns;
  bool over;
} WaitLimit;

/* A coroutine, because a timer of one's own in the AioContext needs its layout (see compat.h). */
static void coroutine_fn run_limit(void *opaque) {
  WaitLimit *limit = opaque;

  qemu_co_sleep_ns_wakeable(&limit->sleep, QEMU_CLOCK_REALTIME, limit->ns);
  limit->over = true;
  aio_wait_kick();
}

/*
 * A backend that is told to hold back (blkdebug, I/O limits on a clock that stands still here)
 * would keep us for ever: hence the limit in real time, after which the transfer just counts as
 * late.
 */
void revo_backend_wait(RevoBackend *backend, uint32_t max_ms) {
  WaitLimit limit = {.ns = max_ms * SCALE_MS};
  RevoCard *card = backend->card;

  if (!outstanding(backend) || max_ms == 0)
    return;
  object_ref(OBJECT(card));
  card->waiting++;
  qemu_coroutine_enter(qemu_coroutine_create(run_limit, &limit));
  AIO_WAIT_WHILE(blk_get_aio_context(backend->blk), outstanding(backend) && !limit.over);
  if (limit.over)
    warn_report_once("%s: the block node '%s' of port %u did not answer within %" PRIu32
                     " ms of host time (backend-wait-ms); virtual time goes on without it",
                     revo_name(card), revo_blk_name(backend->blk), backend->port, max_ms);
  else
    qemu_co_sleep_wake(&limit.sleep);
  card->waiting--;
  object_unref(OBJECT(card));
}
