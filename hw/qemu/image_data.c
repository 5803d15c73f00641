/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an image holds, for preset=image: asked of the block layer when the SSD is realized, piece
 * by piece, through formats, filters and backing files. Where it knows of zeroes there is nothing.
 * How coarse that is is up to the image: qcow2 knows clusters, a file the blocks of its file
 * system; and a node that cannot tell (a host's disk) says that all of it is data.
 *
 * A virtual machine that comes in by migration brings the flash along: its image, which still
 * belongs to the other side, is left alone.
 */
#include "glue.h"

static void add(GArray *data, uint64_t offset, uint64_t bytes) {
  struct rd_extent *last =
      data->len > 0 ? &g_array_index(data, struct rd_extent, data->len - 1) : NULL;
  struct rd_extent next = {offset, bytes};

  if (last && last->offset + last->bytes == offset)
    last->bytes += bytes;
  else
    g_array_append_val(data, next);
}

GArray *revo_image_data(const char *who, BlockBackend *blk, uint64_t offset_bytes, uint64_t bytes,
                        Error **errp) {
  g_autoptr(GArray) data = g_array_sized_new(false, false, sizeof(struct rd_extent), 64);
  unsigned pieces = 0;
  int64_t len;

  if (runstate_check(RUN_STATE_INMIGRATE))
    return g_steal_pointer(&data);
  for (uint64_t at = 0; at < bytes; at += len) {
    int status =
        bdrv_block_status_above(blk_bs(blk), NULL, offset_bytes + at, bytes - at, &len, NULL, NULL);
    if (status < 0) {
      error_setg_errno(errp, -status,
                       "%s: preset=image: block node '%s' does not tell what it holds at byte "
                       "%" PRIu64,
                       who, revo_blk_name(blk), offset_bytes + at);
      return NULL;
    }
    if (len == 0) /* the image ends here */
      break;
    if (++pieces > RD_MAX_EXTENTS) {
      error_setg(errp,
                 "%s: preset=image: block node '%s' is in more than %u pieces of data and holes up "
                 "to byte %" PRIu64 "; such an image can be taken for full: preset=full",
                 who, revo_blk_name(blk), RD_MAX_EXTENTS, offset_bytes + at);
      return NULL;
    }
    if (status & BDRV_BLOCK_DATA && !(status & BDRV_BLOCK_ZERO))
      add(data, at, len);
  }
  return g_steal_pointer(&data);
}
