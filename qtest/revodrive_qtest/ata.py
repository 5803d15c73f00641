# SPDX-License-Identifier: GPL-2.0-or-later
"""ATA commands as a driver writes them, and their outcome (ATA8-ACS; FIS layout Serial ATA 3.0, 10.3).

A Command describes; core.Core issues it; a Completion tells how it ended.
"""
import dataclasses

DATA_SET_MANAGEMENT, READ_SECTORS, READ_SECTORS_EXT, READ_DMA_EXT = 0x06, 0x20, 0x24, 0x25
READ_LOG_EXT, WRITE_SECTORS, WRITE_SECTORS_EXT, WRITE_DMA_EXT = 0x2F, 0x30, 0x34, 0x35
WRITE_DMA_FUA_EXT, READ_VERIFY, READ_LOG_DMA_EXT = 0x3D, 0x40, 0x47
READ_FPDMA, WRITE_FPDMA = 0x60, 0x61
SMART, READ_DMA, WRITE_DMA, STANDBY_IMMEDIATE, CHECK_POWER_MODE = 0xB0, 0xC8, 0xCA, 0xE0, 0xE5
FLUSH_CACHE, FLUSH_CACHE_EXT, IDENTIFY, SET_FEATURES = 0xE7, 0xEA, 0xEC, 0xEF

BSY, DRDY, DF, DRQ, ERR = 0x80, 0x40, 0x20, 0x08, 0x01
ABRT, IDNF, UNC = 0x04, 0x10, 0x40
SECTOR = 512
GOOD = 0x50

IN, OUT = "in", "out"


@dataclasses.dataclass
class Command:
    """One command. `length` is the transfer length; `data` what an OUT command sends.

    `prds`, `prd_count`, `stated_length` and `raw_fis` override what a correct driver would put there;
    hostile tests use them. prds is a list of (guest address, bytes).
    """
    opcode: int
    lba: int = 0
    count: int = 0
    features: int = 0
    device: int = 0
    direction: str = None
    length: int = 0
    data: bytes = None
    tag: int = None  # NCQ tag; None: not queued
    prds: list = None
    prd_count: int = None
    stated_length: int = None
    raw_fis: bytes = None

    def fis(self):
        if self.raw_fis is not None:
            return self.raw_fis
        lba, features, count = self.lba, self.features, self.count
        return bytes((0x27, 0x80, self.opcode, features & 0xFF,
                      lba & 0xFF, lba >> 8 & 0xFF, lba >> 16 & 0xFF, self.device,
                      lba >> 24 & 0xFF, lba >> 32 & 0xFF, lba >> 40 & 0xFF, features >> 8,
                      count & 0xFF, count >> 8, 0, 0, 0, 0, 0, 0))


def read_dma(lba, sectors):
    return Command(READ_DMA_EXT, lba, sectors & 0xFFFF, device=0x40, direction=IN,
                   length=sectors * SECTOR)


def write_dma(lba, data):
    sectors = len(data) // SECTOR
    return Command(WRITE_DMA_EXT, lba, sectors & 0xFFFF, device=0x40, direction=OUT,
                   length=len(data), data=data)


def read_ncq(tag, lba, sectors):
    return Command(READ_FPDMA, lba, tag << 3, sectors & 0xFFFF, 0x40, IN, sectors * SECTOR, tag=tag)


def write_ncq(tag, lba, data, fua=False):
    return Command(WRITE_FPDMA, lba, tag << 3, len(data) // SECTOR & 0xFFFF, 0xC0 if fua else 0x40,
                   OUT, len(data), data, tag)


def pio_in(opcode, sectors=1, **fields):
    return Command(opcode, direction=IN, length=sectors * SECTOR, **fields)


def identify():
    return pio_in(IDENTIFY)


def read_log(log, page=0, sectors=1, dma=False):
    return Command(READ_LOG_DMA_EXT if dma else READ_LOG_EXT, log | (page & 0xFF) << 8, sectors,
                   direction=IN, length=sectors * SECTOR)


def trim(ranges):
    """DATA SET MANAGEMENT with TRIM; ranges are (lba, sectors up to 65535), 64 to a block."""
    payload = b"".join((lba | count << 48).to_bytes(8, "little") for lba, count in ranges)
    payload += bytes(-len(payload) % SECTOR)
    return Command(DATA_SET_MANAGEMENT, 0, len(payload) // SECTOR, 1, 0x40, OUT, len(payload), payload)


@dataclasses.dataclass
class Completion:
    """How a command ended, as the driver finds it."""
    slot: int
    entry: int          # RX ring entry
    fis: bytes          # D2H register FIS of its register set
    error_info: bytes   # 8 bytes at the status buffer
    time_ns: int

    @property
    def status(self):
        return self.fis[2]

    @property
    def error(self):
        return self.fis[3]

    @property
    def lba(self):
        f = self.fis
        return int.from_bytes(bytes((f[4], f[5], f[6], f[8], f[9], f[10])), "little")

    @property
    def count(self):
        return int.from_bytes(self.fis[12:14], "little")

    @property
    def failed(self):
        """The verdict of libsas: BSY or DRQ left, no DRDY, ERR or DF."""
        return bool(self.status & (BSY | DRQ | ERR | DF)) or not self.status & DRDY


class AtaError(Exception):
    """A command ended with an error; `completion` has the registers."""

    def __init__(self, command, completion):
        super().__init__(f"ATA command {command.opcode:#04x} at LBA {command.lba}: status "
                         f"{completion.status:#04x}, error {completion.error:#04x}, "
                         f"entry {completion.entry:#010x}")
        self.completion = completion


def words(data):
    """The 16-bit words of an IDENTIFY or log sector."""
    return [int.from_bytes(data[i:i + 2], "little") for i in range(0, len(data), 2)]


def ata_string(data, first, last):
    """Text in words first..last of IDENTIFY data: bytes swapped within each word."""
    raw = data[2 * first:2 * last + 2]
    swapped = bytes(raw[i ^ 1] for i in range(len(raw)))
    return swapped.decode("ascii").strip()
