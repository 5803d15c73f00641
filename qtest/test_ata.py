# SPDX-License-Identifier: GPL-2.0-or-later
"""The disks as ATA devices: identity, data commands, limits, TRIM, errors."""
import random

import pytest

from revodrive_qtest import AtaError, ata, regs, storage
from revodrive_qtest.storage import stamp

SECTORS = 64 * storage.MIB // 512


def stats(card, index):
    """Block statistics of member `index`, by the name of its node."""
    for entry in card.machine.qmp("query-blockstats"):
        if entry.get("node-name") == f"d{index}":
            return entry["stats"]
    raise AssertionError("no such node")


def image_of(card, index):
    return card.images[index].read_bytes()


def test_identify_names(rig):
    card = rig()
    data = card.disk.identify()
    assert ata.ata_string(data, 27, 46) == "OCZ-REVODRIVE3 X2"
    serial = ata.ata_string(data, 10, 19)
    assert serial.startswith("OCZ-") and len(serial) == 20
    assert ata.ata_string(data, 23, 26)
    assert sum(data) % 256 == 0 and data[510] == 0xA5


def test_identify_capacity(rig):
    words = ata.words(rig().disk.identify())
    assert words[0] & 0x8000 == 0
    assert words[60] | words[61] << 16 == SECTORS
    assert words[100] | words[101] << 16 | words[102] << 32 == SECTORS
    assert words[106] & 0xF000 in (0, 0x4000), "512-byte logical sectors"


def test_identify_features(rig):
    """DMA, LBA, LBA48, NCQ depth 32 at 6 Gb/s, flush, TRIM that is repeatable but not zeroing (C027)."""
    words = ata.words(rig().disk.identify())
    assert words[49] & 0x300 == 0x300
    assert words[75] & 0x1F == 31
    assert words[76] & 0x10E == 0x10E
    assert words[77] >> 1 & 7 == 3
    assert words[83] & 0x2400 == 0x2400 and words[86] & 0x2400 == 0x2400
    assert words[88] & 0x7F == 0x7F
    assert words[169] & 1 and words[69] & 0x4000 and not words[69] & 0x20
    assert words[217] == 1
    assert words[108] >> 12 == 5, "NAA 5"
    assert words[128] & 1 and not words[128] & 0x0E, "security: supported, not enabled, not locked"


def test_no_claim_of_what_is_missing(rig):
    """C031: neither queued TRIM nor other NCQ extras are claimed."""
    words = ata.words(rig().disk.identify())
    assert not words[77] & 0x40
    assert not words[82] & 0x0010, "PACKET"


@pytest.mark.parametrize("opcode, lba48", [
    (ata.READ_DMA, False), (ata.READ_DMA_EXT, True), (ata.READ_SECTORS, False),
    (ata.READ_SECTORS_EXT, True)])
def test_reads(rig, opcode, lba48):
    card = rig()
    completion, data = card.disk.execute(ata.Command(opcode, 77, 3, device=0x40, direction=ata.IN,
                                                     length=1536))
    assert data == stamp(77, 3)
    assert completion.entry == regs.RX_DONE | completion.slot


@pytest.mark.parametrize("opcode", [ata.WRITE_DMA, ata.WRITE_DMA_EXT, ata.WRITE_SECTORS,
                                    ata.WRITE_SECTORS_EXT, ata.WRITE_DMA_FUA_EXT])
def test_writes_reach_the_image(rig, opcode):
    card = rig()
    payload = stamp(500, 5, salt=9)
    card.disks[2].execute(ata.Command(opcode, 50, 5, device=0x40, direction=ata.OUT, length=2560,
                                      data=payload))
    card.disks[2].flush()
    expected = bytearray(stamp(0, 2048))
    expected[50 * 512:55 * 512] = payload
    assert image_of(card, 2)[:2048 * 512] == expected
    assert image_of(card, 1)[:2048 * 512] == stamp(0, 2048)


def test_count_zero_is_256_sectors(rig):
    """28-bit commands (ATA8-ACS 7.22)."""
    card = rig()
    _, data = card.disk.execute(ata.Command(ata.READ_DMA, 16, 0, device=0x40, direction=ata.IN,
                                            length=256 * 512))
    assert data == stamp(16, 256)


@pytest.mark.parametrize("sectors", [1, 8, 255, 256, 1024])
def test_transfer_sizes(rig, sectors):
    """From one sector to the largest request of the driver, written and read back queued."""
    card = rig()
    payload = stamp(40000, sectors, salt=3)
    card.disk.ncq([ata.write_ncq(0, 30000, payload)])
    request, = card.disk.ncq([ata.read_ncq(31, 30000, sectors)])
    assert card.core.data_of(request) == payload


def test_queue_of_32_tags_on_four_disks(rig):
    """All tags of all disks outstanding at once; each read finds its own sectors."""
    card = rig()
    requests = [(d, t, disk.issue(ata.read_ncq(t, 32 * t + d, 8)))
                for t in range(32) for d, disk in enumerate(card.disks)]
    card.bridge.wait(*[r for _, _, r in requests])
    for d, t, request in requests:
        assert not request.completion.failed
        assert card.core.data_of(request) == stamp(32 * t + d, 8)


def test_random_queued_writes_and_reads(rig, seed):
    """A model of the disk content in this process agrees with the disk after each batch."""
    card = rig("timing=off")
    rng = random.Random(seed)
    model = bytearray(stamp(0, 2048))
    for round_ in range(12):
        commands, taken = [], []
        for tag in range(rng.randint(1, 32)):
            sectors = rng.choice((1, 3, 8, 16))
            lba = 64 * tag + rng.randrange(64 - sectors)
            taken.append((lba, sectors))
            if rng.random() < 0.5:
                payload = rng.randbytes(512 * sectors)
                model[512 * lba:512 * (lba + sectors)] = payload
                commands.append(ata.write_ncq(tag, lba, payload, fua=rng.random() < 0.2))
            else:
                commands.append(ata.read_ncq(tag, lba, sectors))
        for request, (lba, sectors) in zip(card.disk.ncq(commands), taken):
            if request.command.direction == ata.IN:
                found = card.core.data_of(request)
                assert found == model[512 * lba:512 * (lba + sectors)], f"round {round_}, lba {lba}"
    card.disk.flush()
    assert image_of(card, 0)[:len(model)] == model


@pytest.mark.parametrize("offset", [0, 1, 2, 511, 4095])
def test_scattered_odd_buffers(rig, offset):
    """PRDs of any size and alignment, both directions; the guards around them stay intact."""
    card = rig()
    sizes = [1, 3, 511, 512, 4096, 100, 7, 2, 1936 + 1024]
    total = sum(sizes)
    assert total % 512 == 0
    prds = [(card.machine.memory.alloc(n, align=4096, offset=offset), n) for n in sizes]
    payload = stamp(9000, total // 512, salt=5)
    write = ata.Command(ata.WRITE_DMA_EXT, 600, total // 512, device=0x40, direction=ata.OUT,
                        length=total, data=payload, prds=prds)
    card.disk.execute(write)
    for address, size in prds:
        card.machine.write(address, bytes(size))
    _, data = card.disk.execute(ata.Command(ata.READ_DMA_EXT, 600, total // 512, device=0x40,
                                            direction=ata.IN, length=total, prds=prds))
    assert data == payload
    card.machine.memory.check_guards()


def test_128_segments(rig):
    """The driver's largest list: 128 entries of 4 KiB."""
    card = rig()
    prds = [(card.machine.memory.alloc(4096, align=4096), 4096) for _ in range(128)]
    request, = card.disk.ncq([ata.Command(ata.READ_FPDMA, 8, 7 << 3, 1024, 0x40, ata.IN, 1024 * 512,
                                          tag=7, prds=prds)])
    assert card.core.data_of(request) == stamp(8, 1024)


def test_everything_above_4_gib(rig):
    """Rings, command tables and data above 4 GiB."""
    card = rig(memory="5G", high_memory=True)
    memory = card.machine.memory
    assert card.core.rx_ring >= 1 << 32
    buffer = memory.alloc(4096, high=True)
    card.core._slot_buffers[700] = memory.alloc(8192, high=True)
    request = card.disk.issue(ata.Command(ata.READ_DMA_EXT, 9, 8, device=0x40, direction=ata.IN,
                                          length=4096, prds=[(buffer, 4096)]), slot=700)
    card.bridge.wait(request)
    assert card.core.data_of(request) == stamp(9, 8)


def test_last_sector_and_beyond(rig):
    """C010: the end is the end, for each kind of data command; never another disk's data."""
    card = rig()
    card.disk.write(SECTORS - 1, stamp(1))
    assert card.disk.read(SECTORS - 1, 1) == stamp(1)
    beyond = [ata.read_dma(SECTORS, 1), ata.read_dma(SECTORS - 1, 2), ata.write_dma(SECTORS, stamp(1)),
              ata.read_dma((1 << 48) - 1, 1), ata.read_ncq(0, SECTORS - 1, 2),
              ata.trim([(SECTORS - 1, 2)])]
    for command in beyond:
        completion, _ = card.disk.execute(command, check=False)
        assert completion.failed and completion.entry & regs.RX_ERR, hex(command.opcode)
        assert completion.error & (ata.ABRT | ata.IDNF)
        card.disk.read_log(0x10)
    assert card.disk.read(0, 1) == stamp(0)


@pytest.mark.parametrize("opcode", [0x00, 0x01, 0x63, 0x64, 0x65, 0x8A, 0xA0, 0xA1, 0xC4, 0xF9, 0xFF])
def test_unsupported_commands_abort(rig, opcode):
    """At once, with ABRT and the error record, whatever transfer they announce."""
    card = rig()
    for length in (0, 512):
        command = ata.Command(opcode, count=1, direction=ata.IN if length else None, length=length)
        completion, _ = card.disk.execute(command, check=False)
        assert completion.status & ata.ERR and completion.error & ata.ABRT
        assert completion.entry & regs.RX_ERR
    assert card.disk.read(0, 1) == stamp(0)


def test_non_data_commands(rig):
    """What libata, hdparm and shutdown send."""
    card = rig()
    power, _ = card.disk.execute(ata.Command(ata.CHECK_POWER_MODE))
    assert power.count & 0xFF == 0xFF
    for opcode in (ata.STANDBY_IMMEDIATE, 0xE1, 0xE2, 0xE3, ata.FLUSH_CACHE, ata.FLUSH_CACHE_EXT):
        completion, _ = card.disk.execute(ata.Command(opcode))
        assert completion.status == ata.GOOD and completion.error == 0, hex(opcode)
    card.disk.execute(ata.Command(ata.SET_FEATURES, features=0x03, count=0x46))
    card.disk.execute(ata.Command(ata.READ_VERIFY, 5, 4, device=0x40))
    with pytest.raises(AtaError):
        card.disk.execute(ata.Command(ata.SET_FEATURES, features=0x7F))


def test_smart_basics(rig):
    """C034: RETURN STATUS has 4Fh and C2h in the FIS; the data sector sums to zero."""
    card = rig()
    completion, _ = card.disk.execute(ata.Command(ata.SMART, 0xC24F00, features=0xDA))
    assert completion.lba >> 8 & 0xFFFF == 0xC24F
    _, data = card.disk.execute(ata.pio_in(ata.SMART, lba=0xC24F00, features=0xD0, count=1))
    assert sum(data) % 256 == 0
    with pytest.raises(AtaError):
        card.disk.execute(ata.Command(ata.SMART, 0x123400, features=0xDA))


@pytest.mark.parametrize("dma", [False, True], ids=["pio", "dma"])
def test_log_directory(rig, dma):
    """Log 0: version 1; the NCQ error log is in it. A log that is not there is ABRT."""
    card = rig()
    directory = ata.words(card.disk.read_log(0, dma=dma))
    assert directory[0] == 1 and directory[0x10] == 1
    absent = next(n for n in range(0x20, 0x80) if directory[n] == 0)
    with pytest.raises(AtaError):
        card.disk.read_log(absent, dma=dma)


def test_error_log_without_error(rig):
    """Log 10h outside an error: valid, checksummed, "not queued"."""
    log = rig().disk.read_log(0x10)
    assert len(log) == 512 and sum(log) % 256 == 0 and log[0] & 0x80


def test_mixing_queued_and_plain_commands(rig):
    """C013: a plain read arriving with queued ones outstanding aborts all; log 10h says "not queued"."""
    card = rig()
    queued = [card.disk.issue(ata.read_ncq(t, 8 * t, 8)) for t in range(4)]
    plain = card.disk.issue(ata.read_dma(0, 1))
    card.bridge.wait(plain, *queued)
    assert plain.completion.failed and all(r.completion.failed for r in queued)
    assert card.disk.read_log(0x10)[0] & 0x80
    assert card.disk.read(0, 1) == stamp(0)


def test_duplicate_tag(rig):
    """A tag that is outstanding already stops the queue with an error instead of losing one."""
    card = rig()
    requests = [card.disk.issue(ata.read_ncq(4, 0, 8)), card.disk.issue(ata.read_ncq(4, 8, 8))]
    card.bridge.wait(*requests)
    assert any(r.completion.failed for r in requests)
    card.disk.read_log(0x10)
    assert card.disk.read(0, 1) == stamp(0)


def test_flush_is_a_flush(rig):
    card = rig()
    before = stats(card, 1)["flush_operations"]
    card.disks[1].flush()
    assert stats(card, 1)["flush_operations"] == before + 1


def test_trim_frees_the_image(rig):
    """TRIM arrives as discard: the file loses its blocks, the neighbours keep their data (C029)."""
    card = rig()
    card.disk.write(4096, b"\x77" * (1024 * 512))
    card.disk.flush()
    before = card.images[0].stat().st_blocks
    card.disk.trim((4104, 1008))
    card.disk.flush()
    assert stats(card, 0)["unmap_operations"] >= 1
    assert card.images[0].stat().st_blocks <= before - 900
    assert card.disk.read(4096, 8) == b"\x77" * 4096
    assert card.disk.read(5112, 8) == b"\x77" * 4096
    assert card.disk.read(4104, 8) == card.disk.read(4104, 8)


def test_trim_ranges(rig):
    """64 ranges in one block, empty ranges among them, the largest count, both ends of the disk."""
    card = rig()
    ranges = [(1000 + 16 * i, 8 if i % 3 else 0) for i in range(64)]
    card.disk.trim(*ranges)
    for i, (lba, count) in enumerate(ranges[:64]):
        assert card.disk.read(lba + 8, 8) == stamp(lba + 8, 8), f"range {i} ate its neighbour"
        if not count:
            assert card.disk.read(lba, 8) == stamp(lba, 8)
    card.disk.trim((1, 65535), (65536, SECTORS - 65537))
    assert card.disk.read(0, 1) == stamp(0)


def test_trim_with_discard_off(rig):
    """discard=off on the card: TRIM succeeds and leaves the image alone."""
    card = rig("discard=off")
    card.disk.trim((0, 2048))
    assert stats(card, 0)["unmap_operations"] == 0
    assert image_of(card, 0)[:2048 * 512] == stamp(0, 2048)


def test_no_stale_bytes_in_replies(rig):
    """C067: reserved parts of IDENTIFY and the logs are zero, and two reads are alike."""
    card = rig()
    first, second = card.disk.identify(), card.disk.identify()
    assert first == second
    words = ata.words(first)
    assert words[129:160] == [0] * 31
    assert words[224:234] == [0] * 10 and words[236:254] == [0] * 18
    assert card.disk.read_log(0x10)[20:511] == bytes(491)
