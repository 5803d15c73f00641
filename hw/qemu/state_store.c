/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the host call persist() puts what outlives the power of the SSDs: the block node of the
 * card's property state=. Without one it is kept in memory, under the card's id, so that it lasts
 * as long as the process.
 *
 * The node holds two copies, the second one at half its size (rounded down to 4 KiB). A copy is a
 * header of 512 bytes and the core's bytes. The older copy is overwritten, then the node is
 * flushed; whatever stops that in the middle leaves the other copy. Which one counts: the higher
 * sequence number among those whose checksums are right. Format: docs/smart.md.
 *
 * Writing is asynchronous and one at a time; what comes meanwhile is written next, the newest only.
 * Nothing is written while the node belongs to another process (migration).
 */
#include "glue.h"

#define MIN_BYTES (8 * MiB) /* a copy of all that eight SSDs can have to say */
#define COPY_ALIGN 4096
#define HEADER_BYTES 512
#define FORMAT_VERSION 1
#define COPIES 2

static const char kMagic[8] = {'R', 'E', 'V', 'O', 'S', 'T', 'A', 'T'};

enum {
  AT_MAGIC = 0,
  AT_VERSION = 8,
  AT_HEADER_CRC = 12,
  AT_SEQUENCE = 16,
  AT_LENGTH = 24,
  AT_DATA_CRC = 32,
};

typedef enum CopyState { COPY_EMPTY, COPY_VALID, COPY_DAMAGED, COPY_NEWER, COPY_FOREIGN } CopyState;

typedef enum Step { STEP_FORMAT, STEP_FORMAT_FLUSH, STEP_WRITE, STEP_WRITE_FLUSH, STEP_DONE } Step;

typedef struct Copy {
  CopyState state;
  uint64_t sequence;
  uint32_t version;
  GByteArray *data;
} Copy;

struct RevoStore {
  RevoCard *card;
  BlockBackend *blk;
  uint64_t copy_bytes;
  uint64_t sequence; /* of the newest copy */
  unsigned newest;   /* its number */
  bool formatted;    /* there is a valid copy */
  GByteArray *found; /* what was stored when the card was realized; NULL: nothing */

  GByteArray *next;    /* to be written; NULL: nothing */
  GArray *next_tokens; /* who waits for it */
  GByteArray *current; /* being written; NULL: nothing */
  GArray *tokens;      /* who waits for it */
  Step step;
  uint8_t *buffer;
  QEMUIOVector qiov;
  QEMUBH *ended; /* of the step, with ... */
  int ret;       /* ... this result */
  bool quiesced; /* by the block layer: nothing new is started ... */
  bool forced;   /* ... unless somebody waits who cannot wait for its end */
};

/* What cards without state= would store, by their ids. */
static GHashTable *kept;

static uint32_t crc32_of(const uint8_t *bytes, size_t len) {
  uint32_t crc = UINT32_MAX;

  for (size_t i = 0; i < len; i++) {
    crc ^= bytes[i];
    for (unsigned bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0); /* IEEE 802.3, reflected */
  }
  return ~crc;
}

static bool is_zero(const uint8_t *bytes, size_t len) {
  return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* ------------------------------------------------------------------------------------- reading */

typedef struct SyncRead {
  bool done;
  int ret;
} SyncRead;

static void read_ended(void *opaque, int ret) {
  SyncRead *read = opaque;

  read->ret = ret;
  read->done = true;
  aio_wait_kick();
}

static int read_sync(RevoStore *store, uint64_t offset, uint8_t *buf, size_t len) {
  QEMUIOVector qiov;
  SyncRead read = {false, 0};

  qemu_iovec_init_buf(&qiov, buf, len);
  blk_aio_preadv(store->blk, offset, &qiov, 0, read_ended, &read);
  AIO_WAIT_WHILE(blk_get_aio_context(store->blk), !read.done);
  return read.ret;
}

static CopyState check_header(RevoStore *store, uint8_t *header, Copy *copy) {
  if (is_zero(header, HEADER_BYTES))
    return COPY_EMPTY;
  if (memcmp(header + AT_MAGIC, kMagic, sizeof(kMagic)) != 0)
    return COPY_FOREIGN;
  uint32_t crc = ldl_le_p(header + AT_HEADER_CRC);
  stl_le_p(header + AT_HEADER_CRC, 0);
  if (crc32_of(header, HEADER_BYTES) != crc)
    return COPY_DAMAGED;
  copy->version = ldl_le_p(header + AT_VERSION);
  copy->sequence = ldq_le_p(header + AT_SEQUENCE);
  if (copy->version != FORMAT_VERSION)
    return COPY_NEWER;
  return ldq_le_p(header + AT_LENGTH) <= store->copy_bytes - HEADER_BYTES ? COPY_VALID
                                                                          : COPY_DAMAGED;
}

static int read_copy(RevoStore *store, unsigned number, Copy *copy) {
  uint8_t header[HEADER_BYTES];
  uint64_t offset = number * store->copy_bytes;
  int ret = read_sync(store, offset, header, sizeof(header));

  if (ret < 0)
    return ret;
  copy->state = check_header(store, header, copy);
  if (copy->state != COPY_VALID)
    return 0;
  copy->data = g_byte_array_new();
  g_byte_array_set_size(copy->data, ldq_le_p(header + AT_LENGTH));
  if (copy->data->len)
    ret = read_sync(store, offset + HEADER_BYTES, copy->data->data, copy->data->len);
  if (crc32_of(copy->data->data, copy->data->len) != ldl_le_p(header + AT_DATA_CRC))
    copy->state = COPY_DAMAGED;
  return MIN(ret, 0);
}

/* A node without a copy must hold nothing at all: it may be somebody's disk. */
static bool check_blank(RevoStore *store, Error **errp) {
  g_autofree uint8_t *bytes = g_malloc(MIN_BYTES);
  int ret = read_sync(store, 0, bytes, MIN_BYTES);

  if (ret < 0) {
    error_setg_errno(errp, -ret, "%s: state=%s cannot be read", revo_name(store->card),
                     revo_blk_name(store->blk));
    return false;
  }
  if (is_zero(bytes, MIN_BYTES))
    return true;
  error_setg(errp,
             "%s: state=%s holds something else (it is neither empty nor the state of a card); "
             "give a node of its own, all zero the first time",
             revo_name(store->card), revo_blk_name(store->blk));
  return false;
}

static bool refuse(RevoStore *store, const Copy *copies, Error **errp) {
  const char *who = revo_name(store->card), *node = revo_blk_name(store->blk);

  for (unsigned i = 0; i < COPIES; i++)
    if (copies[i].state == COPY_NEWER) {
      error_setg(errp, "%s: state=%s has format version %" PRIu32 ", this plugin knows %d", who,
                 node, copies[i].version, FORMAT_VERSION);
      return true;
    }
  for (unsigned i = 0; i < COPIES; i++)
    if (copies[i].state == COPY_DAMAGED) {
      error_setg(errp,
                 "%s: state=%s: no copy of the state in it is whole; restore it from a backup, or "
                 "fill it with zeros to start with SSDs as new",
                 who, node);
      return true;
    }
  return false;
}

/* Sets sequence, newest, formatted and found from what the node holds. */
static bool scan(RevoStore *store, Error **errp) {
  Copy copies[COPIES] = {};
  bool ok = false;
  int best = -1;

  for (unsigned i = 0; i < COPIES; i++) {
    int ret = read_copy(store, i, &copies[i]);
    if (ret < 0) {
      error_setg_errno(errp, -ret, "%s: state=%s cannot be read", revo_name(store->card),
                       revo_blk_name(store->blk));
      goto out;
    }
    if (copies[i].state == COPY_VALID && (best < 0 || copies[i].sequence > copies[best].sequence))
      best = i;
  }
  if (best < 0) {
    ok = !refuse(store, copies, errp) && check_blank(store, errp);
    goto out;
  }
  ok = true;
  store->formatted = true;
  store->newest = best;
  store->sequence = copies[best].sequence;
  g_clear_pointer(&store->found, g_byte_array_unref);
  store->found = g_steal_pointer(&copies[best].data);
out:
  for (unsigned i = 0; i < COPIES; i++)
    g_clear_pointer(&copies[i].data, g_byte_array_unref);
  return ok;
}

/* ------------------------------------------------------------------------------------- writing */

/* The node may be handed to another process: then it is not ours to write. */
static bool is_active(const RevoStore *store) {
  BlockDriverState *bs = blk_bs(store->blk);

  return bs && !(bs->open_flags & BDRV_O_INACTIVE);
}

static bool may_start(const RevoStore *store) {
  return store->next && is_active(store) && (!store->quiesced || store->forced);
}

static void answer(RevoCard *card, const GArray *tokens, int error) {
  for (guint i = 0; i < tokens->len; i++)
    rd_card_block_done(card->core, g_array_index(tokens, uint64_t, i), error);
}

static void put_header(uint8_t *header, uint64_t sequence, const uint8_t *data, size_t len) {
  memset(header, 0, HEADER_BYTES);
  memcpy(header + AT_MAGIC, kMagic, sizeof(kMagic));
  stl_le_p(header + AT_VERSION, FORMAT_VERSION);
  stq_le_p(header + AT_SEQUENCE, sequence);
  stq_le_p(header + AT_LENGTH, len);
  stl_le_p(header + AT_DATA_CRC, crc32_of(data, len));
  stl_le_p(header + AT_HEADER_CRC, crc32_of(header, HEADER_BYTES));
}

static void start_next(RevoStore *store);

static void finish(RevoStore *store, int error) {
  GArray *tokens = g_steal_pointer(&store->tokens);

  g_clear_pointer(&store->buffer, qemu_vfree);
  g_clear_pointer(&store->current, g_byte_array_unref);
  if (error)
    warn_report("%s: state=%s cannot be written: %s", revo_name(store->card),
                revo_blk_name(store->blk), strerror(-error));
  answer(store->card, tokens, error);
  g_array_unref(tokens);
  start_next(store);
  aio_wait_kick();
}

static void step_ended(void *opaque, int ret);

static void write_at(RevoStore *store, uint64_t offset, size_t len) {
  qemu_iovec_init_buf(&store->qiov, store->buffer, len);
  blk_aio_pwritev(store->blk, offset, &store->qiov, 0, step_ended, store);
}

static void run_step(RevoStore *store) {
  const GByteArray *data = store->current;

  switch (store->step) {
    case STEP_FORMAT: /* so that a first write that is cut short leaves a valid copy */
      put_header(store->buffer, 0, NULL, 0);
      write_at(store, 0, HEADER_BYTES);
      break;
    case STEP_WRITE:
      put_header(store->buffer, store->sequence + 1, data->data, data->len);
      memcpy(store->buffer + HEADER_BYTES, data->data, data->len);
      write_at(store, (1 - store->newest) * store->copy_bytes, HEADER_BYTES + data->len);
      break;
    default:
      blk_aio_flush(store->blk, step_ended, store);
      break;
  }
}

/* Not called by the block layer itself, for the reason that block.c gives at transfer_ended(). */
static void next_step(void *opaque) {
  RevoStore *store = opaque;

  if (store->ret < 0) {
    finish(store, store->ret);
    return;
  }
  if (store->step == STEP_FORMAT_FLUSH) {
    store->formatted = true;
    store->newest = 0;
  }
  if (++store->step < STEP_DONE) {
    run_step(store);
    return;
  }
  store->newest = 1 - store->newest;
  store->sequence++;
  finish(store, 0);
}

static void step_ended(void *opaque, int ret) {
  RevoStore *store = opaque;

  store->ret = ret;
  qemu_bh_schedule(store->ended);
}

static void start_next(RevoStore *store) {
  if (store->current || !may_start(store))
    return;
  store->current = g_steal_pointer(&store->next);
  store->tokens = g_steal_pointer(&store->next_tokens);
  store->next_tokens = g_array_new(false, false, sizeof(uint64_t));
  if (store->current->len > store->copy_bytes - HEADER_BYTES) {
    warn_report("%s: state=%s is too small: %u bytes are to be stored in each half of it",
                revo_name(store->card), revo_blk_name(store->blk), store->current->len);
    finish(store, -ENOSPC);
    return;
  }
  store->buffer = blk_try_blockalign(store->blk, HEADER_BYTES + store->current->len);
  if (!store->buffer) {
    finish(store, -ENOMEM);
    return;
  }
  store->step = store->formatted ? STEP_WRITE : STEP_FORMAT;
  run_step(store);
}

/* ------------------------------------------------------------------------------ what others call
 */

static void keep_in_memory(RevoCard *card, const void *bytes, size_t len) {
  if (!DEVICE(card)->id)
    return;
  if (!kept)
    kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
  g_hash_table_replace(kept, g_strdup(DEVICE(card)->id), g_bytes_new(bytes, len));
}

void revo_store_put(RevoCard *card, const void *bytes, size_t len, uint64_t token) {
  RevoStore *store = card->store;
  bool waits = token && store && is_active(store);

  if (store) {
    g_clear_pointer(&store->next, g_byte_array_unref);
    store->next = g_byte_array_append(g_byte_array_sized_new(len), bytes, len);
  } else {
    keep_in_memory(card, bytes, len);
  }
  if (waits)
    g_array_append_val(store->next_tokens, token);
  else if (token)
    rd_card_block_done(card->core, token, 0);
  if (store)
    start_next(store);
}

bool revo_store_busy(const RevoCard *card) {
  const RevoStore *store = card->store;

  return store && (store->current || may_start(store));
}

void revo_store_wait(RevoCard *card) {
  RevoStore *store = card->store;

  if (!store)
    return;
  store->forced = true;
  start_next(store);
  if (revo_store_busy(card))
    AIO_WAIT_WHILE(blk_get_aio_context(store->blk), revo_store_busy(card));
  store->forced = false;
}

static void drained_begin(void *opaque) {
  RevoStore *store = opaque;

  store->quiesced = true;
}

static void drained_end(void *opaque) {
  RevoStore *store = opaque;

  store->quiesced = false;
  start_next(store);
}

static const BlockDevOps store_block_ops = {
    .drained_begin = drained_begin,
    .drained_end = drained_end,
};

/* Another process, or a snapshot that was loaded, may have changed the node. */
void revo_store_rescan(RevoCard *card) {
  Error *error = NULL;

  if (!card->store || revo_store_busy(card) || !is_active(card->store))
    return;
  if (!scan(card->store, &error))
    warn_report_err(error);
}

const void *revo_store_found(RevoCard *card, size_t *len) {
  if (card->store) {
    GByteArray *found = card->store->found;
    *len = found ? found->len : 0;
    return *len ? found->data : NULL;
  }
  GBytes *bytes = kept && DEVICE(card)->id ? g_hash_table_lookup(kept, DEVICE(card)->id) : NULL;
  return bytes ? g_bytes_get_data(bytes, len) : NULL;
}

static bool check_node(RevoCard *card, BlockBackend *blk, Error **errp) {
  const char *who = revo_name(card), *node = revo_blk_name(blk);

  if (!blk_bs(blk) || !blk_is_inserted(blk)) {
    error_setg(errp, "%s: state=%s is empty", who, node);
    return false;
  }
  if (!blk_supports_write_perm(blk)) {
    error_setg(errp, "%s: state=%s is read-only; the card writes to it (read-only=off)", who, node);
    return false;
  }
  int64_t bytes = blk_getlength(blk);
  if (bytes < 0) {
    error_setg_errno(errp, -bytes, "%s: the size of state=%s is not known", who, node);
    return false;
  }
  if (bytes < MIN_BYTES) {
    error_setg(errp, "%s: state=%s has %" PRId64 " bytes; it needs at least %d (8 MiB)", who, node,
               bytes, (int)MIN_BYTES);
    return false;
  }
  return true;
}

bool revo_store_open(RevoCard *card, Error **errp) {
  BlockBackend *blk = card->state_blk;
  BlockConf conf = {.blk = blk, .rerror = BLOCKDEV_ON_ERROR_AUTO, .werror = BLOCKDEV_ON_ERROR_AUTO};

  if (!blk)
    return true;
  if (!check_node(card, blk, errp) || !blkconf_apply_backend_options(&conf, false, false, errp))
    return false;
  RevoStore *store = g_new0(RevoStore, 1);
  store->card = card;
  store->blk = blk;
  store->ended = qemu_bh_new(next_step, store);
  store->copy_bytes = QEMU_ALIGN_DOWN(blk_getlength(blk) / COPIES, COPY_ALIGN);
  store->next_tokens = g_array_new(false, false, sizeof(uint64_t));
  card->store = store;
  if (!scan(store, errp)) {
    revo_store_close(card);
    return false;
  }
  /* We hold back ourselves: QEMU ends inside a drained section, and the last store comes then. */
  blk_set_disable_request_queuing(blk, true);
  blk_set_dev_ops(blk, &store_block_ops, store);
  return true;
}

void revo_store_close(RevoCard *card) {
  RevoStore *store = g_steal_pointer(&card->store);

  if (!store)
    return;
  assert(!store->current);
  blk_set_dev_ops(store->blk, NULL, NULL);
  blk_set_disable_request_queuing(store->blk, false);
  g_clear_pointer(&store->next, g_byte_array_unref);
  g_clear_pointer(&store->found, g_byte_array_unref);
  g_array_unref(store->next_tokens);
  qemu_bh_delete(store->ended);
  g_free(store);
}
