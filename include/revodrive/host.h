/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host interface: everything the card needs from the world and everything the world may ask of
 * the card. QEMU's glue, the simulator and the unit tests are three hosts of the same card.
 *
 * Rules that hold for every call:
 *  - One thread at a time. A host serialises all calls into one card (QEMU: the big lock).
 *  - Time is int64_t nanoseconds of the host's virtual clock. The card never reads another clock.
 *  - The card may call the host from inside any rd_card_*() call; the host may call back into the
 *    card from inside a host call only where that call says so.
 *  - No exception and no signal crosses this interface. Errors are negative errno values (0 is
 *    success), plus a message in struct rd_error where a person has to read it.
 */
#ifndef REVODRIVE_HOST_H
#define REVODRIVE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RD_MAX_PORTS 8      /* two cores of four phys */
#define RD_CARD UINT32_MAX  /* in place of a port: the card itself */
#define RD_NEVER INT64_MAX  /* a deadline that never comes */
#define RD_SECTOR_BYTES 512 /* logical sector of every member */

/* A message for a person: names the thing, the value and what is allowed. Never empty on error. */
struct rd_error {
  char text[512];
};

/* Host memory, readable or writable by the card until it is unmapped. */
struct rd_iov {
  void *base;
  size_t len;
};

/* A part of an image, in bytes; and how many of them are taken of one member. */
#define RD_MAX_EXTENTS (1u << 20)
struct rd_extent {
  uint64_t offset, bytes;
};

enum rd_block_op {
  RD_BLOCK_READ,
  RD_BLOCK_WRITE,
  RD_BLOCK_WRITE_FUA, /* done only when the data is on stable storage */
  RD_BLOCK_FLUSH,     /* offset, bytes and iov unused */
  RD_BLOCK_DISCARD,   /* iov unused */
  /* iov unused; the range reads as zeroes afterwards, and takes no space where the backend can */
  RD_BLOCK_WRITE_ZEROES,
};

/* What a command does, for statistics. */
enum rd_command_kind { RD_READ, RD_WRITE, RD_FLUSH, RD_TRIM, RD_OTHER };
#define RD_COMMAND_KINDS 5

/* Where the time of a command goes (include/revodrive/journey.h). */
enum rd_stage {
  RD_STAGE_PCIE,        /* host link: ring entry, header, data, completion */
  RD_STAGE_BRIDGE,      /* command processor of the bridge */
  RD_STAGE_SATA,        /* link between bridge and drive */
  RD_STAGE_CONTROLLER,  /* firmware of the drive */
  RD_STAGE_COMPRESSION, /* in-line compression engine */
  RD_STAGE_MAP,         /* mapping table that was not in the controller */
  RD_STAGE_BUFFER,      /* room in the write buffer */
  RD_STAGE_CHANNEL,     /* flash bus */
  RD_STAGE_DIE,         /* tR, tPROG, tBERS */
  RD_STAGE_GC,          /* room in the flash: garbage collection, throttle */
  RD_STAGE_HOST,        /* backend, timer or completion ring: the host was later than the model */
  RD_STAGE_COALESCING,  /* from the completion entry to the interrupt */
  RD_STAGE_FAULT,       /* held or delayed by a rule of fault injection */
};
#define RD_STAGES 13

/* One completed command, from its doorbell to the interrupt by which the guest hears of it. */
struct rd_command_record {
  unsigned port;             /* 0..RD_MAX_PORTS - 1 */
  enum rd_command_kind kind; /* by the opcode */
  uint8_t opcode;            /* ATA command; of a volume: SCSI operation code */
  uint8_t tag;               /* NCQ; 0 for others */
  bool error;                /* ended with an error, or was refused */
  uint16_t slot;             /* of its core, 0..2047 */
  uint64_t lba;              /* in sectors; 0 where the command has none */
  uint32_t bytes;            /* of its data as the command states it; 0 for none */
  int64_t start_ns;
  int64_t end_ns;
  int64_t stage_ns[RD_STAGES]; /* by enum rd_stage; their sum is end_ns - start_ns */
};

/* Short names, lower case: "read", "pcie". NULL for what is out of range. */
const char *rd_kind_name(unsigned kind);
const char *rd_stage_name(unsigned stage);

enum rd_log_level {
  RD_LOG_GUEST_ERROR, /* the guest broke the programming contract */
  RD_LOG_WARNING,     /* something that the person who runs the machine should know */
  RD_LOG_UNIMP,       /* the guest used something that is not modelled */
  RD_LOG_TRACE,       /* for a developer; hosts drop it unless asked */
};

/*
 * What the host gives the card. All members must be set but those that say they may be NULL. `host`
 * is the pointer given to rd_card_create(). The structure must outlive the card.
 */
struct rd_host_ops {
  int64_t (*now_ns)(void *host);

  /* Copies between guest bus addresses and the card. Non-zero: the whole transfer failed (bus
   * mastering off, nothing at that address, IOMMU fault); the buffer then holds anything. */
  int (*dma_read)(void *host, uint64_t addr, void *buf, size_t len);
  int (*dma_write)(void *host, uint64_t addr, const void *buf, size_t len);

  /*
   * Maps guest memory for a data transfer. to_guest: the card (or the backend) will write it.
   * Returns NULL if that memory cannot be mapped; otherwise *len may have become shorter, never 0.
   * dma_unmap() is called once for each successful map with the *len it returned and how many
   * bytes from its start were written (to_guest) or read.
   */
  void *(*dma_map)(void *host, uint64_t addr, size_t *len, bool to_guest);
  void (*dma_unmap)(void *host, void *ptr, size_t len, bool to_guest, size_t accessed);

  /* Level of the interrupt output. Called on changes only. */
  void (*set_irq)(void *host, bool level);
  /* An edge for message signalled interrupts: at each rise of the level, and again when a cause is
   * still pending after the guest acknowledged. A host without MSI ignores it. */
  void (*msi_notify)(void *host);

  /* One timer for the whole card: call rd_card_timer_fired() at or after the deadline. Replaces the
   * previous deadline; RD_NEVER disarms. */
  void (*arm_timer)(void *host, int64_t deadline_ns);

  /*
   * Starts one transfer on the backend of a member. The iov array and the memory it points to stay
   * valid until rd_card_block_done(token), which may come from inside this call. offset and bytes
   * are multiples of RD_SECTOR_BYTES and within the member's size; bytes equals the sum of the iov.
   */
  void (*block_submit)(void *host, unsigned port, enum rd_block_op op, uint64_t offset,
                       uint64_t bytes, const struct rd_iov *iov, unsigned niov, uint64_t token);
  /* Waits until each transfer of the member has ended: when it returns, rd_card_block_done() has
   * come for each (from inside this call). Transfers that the host keeps for a retry end with
   * -ECANCELED. */
  void (*block_drain)(void *host, unsigned port);
  /*
   * The model's time for this transfer has come and the backend has not answered. A host with a
   * repeatable clock (icount, qtest) waits for the backend here, so that virtual time stands still
   * and rd_card_block_done() comes from inside; another returns at once, and the command is late.
   */
  void (*block_wait)(void *host, unsigned port);

  /*
   * Stores what outlives the power of the members in place of what was stored before: all of it or
   * nothing, durable. The bytes are copied. With a token other than 0, rd_card_block_done(token)
   * comes when it is done (maybe from inside this call), and block_drain() of any member waits for
   * it. NULL: the host keeps nothing.
   */
  void (*persist)(void *host, const void *bytes, size_t len, uint64_t token);

  void (*log)(void *host, enum rd_log_level level, const char *text);

  /* May be NULL. A command has completed and the guest has just been told (or looked by itself).
   * The record is valid during the call. */
  void (*command_done)(void *host, const struct rd_command_record *record);

  /* May be NULL. A resource is booked for [start_ns, end_ns), which may lie in the future; calls
   * come in the order of booking. `track` names the resource ("pcie up", "bridge 0",
   * "port0 sata", "port0 core", "port0 channel 3", "port0 die 12"): the same pointer each time,
   * valid until the member is detached. `label` says what it does ("read"); it lives for ever. */
  void (*span)(void *host, const char *track, const char *label, int64_t start_ns, int64_t end_ns);

  /* May be NULL. `bytes` of the card's own memory, zero and untouched so far, will be a table that
   * is used all over, 5 bytes for each 4 KiB of a member: a host that is after speed may ask its
   * system for large pages there, at the price of memory for what is used of it here and there.
   * Nothing may be written, and nothing depends on it. */
  void (*table_memory)(void *host, void *memory, size_t bytes);
};

/* Where the blocks of a volume go (docs/vca.md). */
enum rd_policy {
  RD_POLICY_STRIPE,   /* chunks round the members, as md's RAID 0 */
  RD_POLICY_DISPATCH, /* to the member that is free, by a map that is kept on the members */
};

/* A card to be built. */
struct rd_card_config {
  const char *profile;     /* name of a built-in profile or a file, NULL for the first one */
  const char *profile_set; /* "section.key=value;…" on top of it, or NULL */
  unsigned ports;          /* phys that may carry a member, 1..RD_MAX_PORTS */
  bool timing;             /* false: behave the same, complete as soon as the backend does */
  bool vca;                /* one SAS volume over ports 0 to ports-1 instead of SATA disks */
  enum rd_policy policy;   /* vca */
  uint32_t chunk_bytes;    /* vca: a power of two, 4 KiB to 16 MiB; 0: 64 KiB */
  unsigned vca_phys;       /* vca: 1, or 4 for a wide port; 0: 1 */
  const void *persistent;  /* what persist() was given last, in an earlier life; NULL: nothing */
  size_t persistent_len;
};

/* The built-in profiles, and every value that a profile and what is set on top of it put in force:
 * numbers as decimal text, and [profile] name, which tells saved states apart. Negative errno and a
 * message as for rd_card_create(). */
typedef void rd_profile_fn(void *opaque, const char *name);
void rd_profile_list(rd_profile_fn *visit, void *opaque);
typedef void rd_setting_fn(void *opaque, const char *section, const char *key, const char *value);
int rd_profile_settings(const char *profile, const char *profile_set, rd_setting_fn *visit,
                        void *opaque, struct rd_error *error);

/* A member (one SSD) to be attached to a port. Strings are copied. */
struct rd_member_config {
  uint64_t bytes;       /* size of the backend; a multiple of RD_SECTOR_BYTES, see rd_card_attach */
  bool read_only;       /* refused by rd_card_attach: an ATA disk cannot be write protected */
  bool discard;         /* the backend wants discards */
  bool frozen;          /* security is frozen at each power-on */
  bool trim_backend;    /* trimmed sectors read as the backend has them, not as a pattern */
  bool panic;           /* the firmware has crashed: a generic name, 32 KiB, nothing works */
  const char *model;    /* up to 40 printable ASCII characters; NULL: the profile's */
  const char *serial;   /* up to 20; required */
  const char *firmware; /* up to 8; NULL: the profile's */
  uint64_t wwn;         /* NAA-5 world wide name; 0: derived from the serial */
  /* What is in the flash of a drive that nothing was stored of: "fresh" (or NULL), "full" (all
   * written once, in order), "steady" (... and at random since) or "image" (what the image holds,
   * written once in order of address). */
  const char *preset;
  /* For "image": what the image holds, up to RD_MAX_EXTENTS parts, in any order; what is beyond
   * `bytes` does not count. Copied. NULL: the host does not know, and "image" is refused. */
  const struct rd_extent *data;
  size_t data_count;
};

enum rd_reset {
  RD_RESET_POWER, /* power cycle: everything volatile is lost */
  RD_RESET_BUS,   /* PCI reset, function level reset or machine reset: members see a link reset */
};

struct rd_card;

/* Builds a card without members. NULL on error, with the message. */
struct rd_card *rd_card_create(const struct rd_card_config *config, const struct rd_host_ops *ops,
                               void *host, struct rd_error *error);
/* Cancels what is in flight (through block_drain) and frees the card. */
void rd_card_destroy(struct rd_card *card);

/* Plugs a member in (at start, or hot: the link comes up and the guest is told) or pulls it out
 * (surprise removal: cancels its commands, the link goes down). Attach fails with -EINVAL or -EBUSY
 * and a message; detach of an empty port does nothing. */
int rd_card_attach(struct rd_card *card, unsigned port, const struct rd_member_config *member,
                   struct rd_error *error);
void rd_card_detach(struct rd_card *card, unsigned port);

/* Calls persist() with the state as it is now: the machine stops or is about to be killed. */
void rd_card_store(struct rd_card *card);
/* Sets a named value of a member, as "smart_life_left" (docs/device.md), or with RD_CARD for the
 * port of the card: "reset_latency" (any value) forgets what is known of latencies. -ENODEV,
 * -EINVAL with a message. */
int rd_card_set(struct rd_card *card, unsigned port, const char *name, uint64_t value,
                struct rd_error *error);

/* Register access in BAR 2, 32 bits, offset a multiple of 4. Safe to call from inside dma_*() (a
 * guest aimed DMA at the card): such an access does nothing and reads all ones. */
uint32_t rd_card_mmio_read(struct rd_card *card, uint32_t offset);
void rd_card_mmio_write(struct rd_card *card, uint32_t offset, uint32_t value);

void rd_card_timer_fired(struct rd_card *card);
/* A command for this sector of this member comes soon, as the host made its work up ahead: brings
 * what the model keeps of the place into the processor's cache. Nothing else changes. Calls for
 * several commands in a row cost little more than one. */
void rd_card_expect(struct rd_card *card, unsigned port, uint64_t lba);
void rd_card_block_done(struct rd_card *card, uint64_t token, int error);
void rd_card_reset(struct rd_card *card, enum rd_reset kind);

/*
 * The whole state as a versioned byte stream (format: docs/architecture.md). Save wants no block
 * transfer to be running except those the host itself keeps for a retry; such commands are stored
 * and started again by rd_card_resume() after a load. The buffer is malloc()ed and the caller's.
 * Load expects a card of the same configuration with the same members attached; anything else, and
 * any damaged stream, is refused with a message and leaves the card reset.
 */
int rd_card_save(struct rd_card *card, uint8_t **buf, size_t *len, struct rd_error *error);
int rd_card_load(struct rd_card *card, const uint8_t *buf, size_t len, struct rd_error *error);
/* The machine runs (again): start what was loaded, arm the timer. Harmless at any other time. */
void rd_card_resume(struct rd_card *card);

/*
 * Named values: counters of the card ("late_ios") and of a member ("port0.reads"). The visitor is
 * called for each; names are stable and listed in docs/counters.md.
 */
typedef void rd_query_fn(void *opaque, const char *name, uint64_t value);
void rd_card_query(struct rd_card *card, rd_query_fn *visit, void *opaque);

/*
 * Fault injection in a member, while it works: adds, clears or releases rules as docs/faults.md
 * describes. -ENODEV or -EINVAL with a message; an order before the one at fault is carried out, a
 * text that cannot be read does nothing. The visitor of the list gets one line for each rule.
 */
int rd_card_fault(struct rd_card *card, unsigned port, const char *text, struct rd_error *error);
typedef void rd_fault_fn(void *opaque, const char *line);
void rd_card_list_faults(struct rd_card *card, unsigned port, rd_fault_fn *visit, void *opaque);

#ifdef __cplusplus
}
#endif
#endif
