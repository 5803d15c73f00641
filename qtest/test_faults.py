# SPDX-License-Identifier: GPL-2.0-or-later
"""Fault injection through the members' property, and the cases that need no guest."""
import pytest

from revodrive_qtest import Bridge, ata, card_of, storage
from revodrive_qtest.bridge import MS, CommandTimeout
from revodrive_qtest.machine import refused
from revodrive_qtest.storage import stamp

LOG10 = 0x10
BAD_LBA = 0x12345


def path_of(member):
    return f"/machine/peripheral/{member if isinstance(member, str) else f'card/port{member}'}"


def fault(card, text, member=0):
    card.machine.qmp("qom-set", path=path_of(member), property="faults", value=text)


def faults(card, member=0):
    return card.machine.qmp("qom-get", path=path_of(member), property="faults").splitlines()


def counter(card, name, member=0):
    return card.machine.qmp("qom-get", path=path_of(member), property=name)


def refusal(card, text, member=0):
    with pytest.raises(Exception) as caught:
        fault(card, text, member)
    return str(caught.value)


def test_c012_one_bad_sector_among_31_reads(rig):
    """Log 10h names the one tag, UNC and the LBA; aborted ones are good when tried again."""
    card = rig()
    fault(card, f"name=bad,action=fail,error=unc,lba={BAD_LBA:#x}")
    lbas = [BAD_LBA - 3 + (tag - 12) * 64 for tag in range(31)]
    requests = card.disk.ncq([ata.read_ncq(tag, lba, 8) for tag, lba in enumerate(lbas)], check=False)
    assert requests[12].completion.failed
    log = card.disk.read_log(LOG10)
    assert sum(log) % 256 == 0
    assert log[0] == 12, "queued, tag 12"
    assert log[2] & ata.ERR and log[3] == ata.UNC
    assert int.from_bytes(log[4:7] + log[8:11], "little") == BAD_LBA
    again = [r.command for r in requests if r.completion.failed and r.command.tag != 12]
    for request in card.disk.ncq(again):
        assert not request.completion.failed
    assert card.disk.ncq([requests[12].command], check=False)[0].completion.failed
    assert counter(card, "media-errors") == 2
    assert all(d.read(BAD_LBA, 8) == bytes(4096) for d in card.disks[1:]), "of one disk only"


def test_c013_command_that_is_not_queued_among_queued_ones(rig):
    """All outstanding is aborted, and log 10h blames no tag."""
    card = rig()
    fault(card, "name=h,action=hold,op=ncq,count=4")
    reads = [card.disk.issue(ata.read_ncq(tag, 8 * tag, 8)) for tag in range(4)]
    intruder = card.disk.issue(ata.identify())
    card.bridge.wait(intruder, *reads)
    assert all(r.completion.failed and r.completion.error == ata.ABRT for r in [intruder, *reads])
    assert card.disk.read_log(LOG10)[0] & 0x80
    assert counter(card, "mixed-ncq") == 1
    request, = card.disk.ncq([ata.read_ncq(0, 5, 3)])
    assert card.core.data_of(request) == stamp(5, 3)


def test_c016_error_log_that_does_not_answer(rig):
    """The log read hangs once; after a link reset all tags are free and all data is there."""
    card = rig()
    fault(card, "name=bad,action=fail,error=unc,lba=100,count=1;name=mute,action=drop,op=log10,count=1")
    reads = card.disk.ncq([ata.read_ncq(tag, 8 * tag, 8) for tag in range(31)], check=False)
    assert any(r.completion.failed for r in reads)
    silent = card.disk.issue(ata.read_log(LOG10))
    with pytest.raises(CommandTimeout):
        card.bridge.wait(silent, limit_ns=5000 * MS)
    resets = counter(card, "link-resets")
    card.core.release(silent)
    card.phy.link_reset()
    card.bridge.sleep(100 * MS)
    assert counter(card, "link-resets") == resets + 1
    for request in card.disk.ncq([ata.read_ncq(tag, 8 * tag, 8) for tag in range(32)]):
        assert card.core.data_of(request) == stamp(request.command.lba, 8)
    assert not card.core.stray


def test_c018_one_silent_drive(rig):
    """The others complete all they are given while one swallows; a reset of its link revives it."""
    card = rig()
    fault(card, "name=dead,action=drop", member=2)
    silent = [card.disks[2].issue(ata.read_ncq(tag, tag, 1)) for tag in range(31)]
    for round_ in range(5):
        requests = [d.issue(ata.read_ncq(tag, 32 * tag + round_, 8))
                    for tag in range(31) for i, d in enumerate(card.disks) if i != 2]
        card.bridge.wait(*requests)
        assert not any(r.completion.failed for r in requests)
    card.bridge.sleep(1000 * MS)
    assert not any(r.done() for r in silent)
    assert "hits=31" in faults(card, 2)[0]
    for request in silent:
        card.core.release(request)
    fault(card, "clear", member=2)
    card.core.phys[2].link_reset()
    card.bridge.sleep(100 * MS)
    assert card.disks[2].read(7, 1) == stamp(7)


def explicit(launch, tmp_path, **options):
    """A bare bridge with ssd0 .. ssd3; options: property text by member."""
    words = []
    for i in range(4):
        words += storage.raw_node(f"d{i}", storage.raw_image(tmp_path / f"ssd{i}.img"))
    words += ["-device", "marvell-88se9485,id=card,addr=4"]
    for i in range(4):
        words += ["-device", f"sf2281,id=ssd{i},bus=card.0,port={i},drive=d{i}{options.get(f'ssd{i}', '')}"]
    return launch(*words)


def test_c036_firmware_panic_identity(launch, tmp_path):
    """The identity owners saw, 32 KiB, no SMART, nothing readable, and at once; the others work."""
    bridge = Bridge(card_of(explicit(launch, tmp_path, ssd1=",panic-mode=on"))).probe()
    disks = bridge.disks()
    assert len(disks) == 4
    data = disks[1].identify()
    words = ata.words(data)
    assert sum(data) % 256 == 0
    assert ata.ata_string(data, 27, 46) == "SandForce{200026BB}"
    assert ata.ata_string(data, 10, 19) == "1"
    assert ata.ata_string(data, 23, 26) == "402ABBR0"
    assert (words[60] | words[61] << 16) * 512 == 32768
    assert words[106] == 0x6003 and not words[82] & 1 and not words[85] & 1
    start = bridge.machine.now_ns
    for opcode in set(range(256)) - {0x90, 0xE0, 0xE1, 0xE2, 0xE3, 0xE5, 0xEC, 0xEF}:
        tag = 0 if opcode in (ata.READ_FPDMA, ata.WRITE_FPDMA) else None
        completion, _ = disks[1].execute(ata.Command(opcode, 0, 1, device=0x40, tag=tag), check=False)
        assert completion.failed, f"{opcode:#x}"
    assert bridge.machine.now_ns - start < 1000 * MS
    for i in (0, 2, 3):
        assert disks[i].read(9, 1) == stamp(9)


def test_rules_from_the_start(launch, tmp_path):
    """Blanks do as well as commas, which QEMU wants doubled."""
    rules = ",faults=name=a op=0x25 lba=5 action=fail error=unc; name=b op=flush,,action=drop"
    machine = explicit(launch, tmp_path, ssd3=rules)
    bridge = Bridge(card_of(machine)).probe()
    assert bridge.disks()[3].read(0, 5) == stamp(0, 5)
    with pytest.raises(ata.AtaError) as caught:
        bridge.disks()[3].read(0, 6)
    assert caught.value.completion.lba == 5 and caught.value.completion.error == ata.UNC
    listed = machine.qmp("qom-get", path=path_of("ssd3"), property="faults").splitlines()
    assert listed == ["name=a,op=0x25,lba=5,action=fail,error=unc,stage=media seen=1 hits=1 resting=0",
                      "name=b,op=flush,action=drop,stage=decode seen=0 hits=0 resting=0"]


def test_messages(rig, tmp_path):
    card = rig()
    for text, words in (("op=read,action=explode", ("port 0", "action=explode", "link-down")),
                        ("action=fail,error=unc,lba=x", ("lba=x", "FIRST-LAST")),
                        ("clear name=z", ("name=z", "no rule"))):
        message = refusal(card, text)
        assert all(word in message for word in words), message
    assert faults(card) == []
    words = storage.raw_node("n", storage.raw_image(tmp_path / "n.img"))
    message = refused(*words, "-device", "marvell-88se9485,id=hba", "-device",
                      "sf2281,bus=hba.0,drive=n,faults=action=hold stage=lunch")
    assert "stage=lunch" in message and "completion" in message


@pytest.mark.parametrize("stage", ["fetch", "decode", "media", "link", "completion"])
@pytest.mark.parametrize("timing", ["", "timing=off"])
def test_hold_and_release_under_load(rig, stage, timing):
    """One chosen command stays while hundreds pass it; then it ends as if nothing had been."""
    card = rig(timing)
    fault(card, f"name=h,action=hold,lba=1000,count=1,stage={stage}")
    held = card.disk.issue(ata.read_ncq(31, 1000, 4))
    for round_ in range(8):
        for request in card.disk.ncq([ata.read_ncq(tag, 16 * tag + round_, 4) for tag in range(31)]):
            assert card.core.data_of(request) == stamp(request.command.lba, 4)
    assert not held.done() and card.core.command_active(held.slot)
    assert "resting=1" in faults(card)[0]
    fault(card, "release name=h")
    card.bridge.wait(held)
    assert not held.completion.failed and card.core.data_of(held) == stamp(1000, 4)
    assert card.machine.qmp("qom-get", path="/machine/peripheral/card", property="late-ios") == 0


def test_slow_commands_are_not_late(rig):
    """A delay is time of the model: exact, repeatable, and nobody waits for the host meanwhile."""
    card = rig()
    start = card.machine.now_ns
    card.disk.read(0, 8)
    usual = card.machine.now_ns - start
    fault(card, "action=delay,delay_us=250000,op=read")
    start = card.machine.now_ns
    card.disk.read(0, 8)
    assert 250 * MS <= card.machine.now_ns - start <= 250 * MS + 2 * usual


def test_data_that_is_damaged_on_its_way(rig):
    card = rig()
    fault(card, "action=corrupt,op=read,lba=20,bits=1,count=1")
    data = card.disk.read(16, 8)
    good = stamp(16, 8)
    assert sum((a ^ b).bit_count() for a, b in zip(data, good)) == 1
    assert data[:2048] == good[:2048] and data[2560:] == good[2560:]
    assert card.disk.read(16, 8) == good
    fault(card, "clear;action=fail,error=icrc,op=write,count=1")
    with pytest.raises(ata.AtaError) as caught:
        card.disk.write(30, bytes(512))
    assert caught.value.completion.error == 0x84
    assert card.disk.read(30, 1) == stamp(30)
    counters = card.disk.read_log(0x11)
    ids = {int.from_bytes(counters[at:at + 2], "little") & 0xFFF:
           int.from_bytes(counters[at + 2:at + 4], "little") for at in range(4, 68, 4)}
    assert ids[1] == 1 and ids[4] == 1, "command with ICRC, R_ERR for data from the host"


def test_link_that_goes_and_comes(rig):
    card = rig()
    fault(card, "name=l,action=link-down,op=now,delay_us=3000000")
    card.bridge.sleep(1000 * MS)
    assert not card.phy.ready
    card.bridge.sleep(8000 * MS)
    assert card.phy.ready and card.phy.attached
    assert card.disk.read(3, 1) == stamp(3)


@pytest.mark.parametrize("stage", ["fetch", "media", "completion"])
def test_pull_and_quit_with_commands_that_rest(rig, stage):
    card = rig()
    for member in (0, 1):
        fault(card, f"action=hold,op=ncq,stage={stage}", member)
        for tag in range(31):
            card.disks[member].issue(ata.write_ncq(tag, 64 * tag, stamp(tag, 4)))
    card.machine.qmp("device_del", id="/machine/peripheral/card/port0")
    card.machine.wait_event("DEVICE_DELETED", path="/machine/peripheral/card/port0")
    card.bridge.sleep(100 * MS)
    assert card.disks[-1].read(1, 1) == stamp(1)


def test_snapshot_of_commands_that_rest(launch, tmp_path):
    """They rest after loadvm as before, and are released into it."""
    words = []
    for i in range(4):
        words += storage.node(f"d{i}", "qcow2", file={
            "driver": "file", "filename": str(storage.qcow2_image(tmp_path / f"d{i}.qcow2"))})
    drives = "".join(f",drive{i}=d{i}" for i in range(4))
    machine = launch(*words, "-device", f"revodrive3-x2,id=card,addr=4{drives}")
    bridge = Bridge(card_of(machine)).probe()
    disk, core = bridge.disks()[0], bridge.cores[0]
    disk.write(0, stamp(0, 64))
    rules = ";".join(f"name={s},action=hold,lba={8 * i},count=1,stage={s}"
                     for i, s in enumerate(("fetch", "decode", "media", "link", "completion")))
    machine.qmp("qom-set", path=path_of(0), property="faults", value=rules)
    requests = [disk.issue(ata.read_ncq(i, 8 * i, 4)) for i in range(5)]
    bridge.sleep(10 * MS)
    assert not any(r.done() for r in requests)
    before = machine.qmp("qom-get", path=path_of(0), property="faults")
    state = core.rx_seen, core.tx_next, dict(core.requests)
    assert not machine.hmp("savevm s").strip()
    for round_ in range(2):
        machine.qmp("qom-set", path=path_of(0), property="faults", value="release")
        bridge.wait(*requests)
        for i, request in enumerate(requests):
            assert not request.completion.failed and core.data_of(request) == stamp(8 * i, 4)
        if round_ == 0:
            assert not machine.hmp("loadvm s").strip()
            core.rx_seen, core.tx_next, core.requests = state[0], state[1], dict(state[2])
            core._sets[0] = (core._sets.get(0, (requests[0].register_set, 0))[0], len(requests))
            for request in requests:
                request.completion = None
            assert machine.qmp("qom-get", path=path_of(0), property="faults") == before


@pytest.mark.parametrize("event, error, status", [("read_aio", ata.UNC, 0x51), ("write_aio", ata.ABRT, 0x71)])
def test_errors_of_the_backend(launch, event, error, status):
    """blkdebug under rerror/werror=report: UNC or DF at the command's first sector, data elsewhere whole."""
    words = storage.faulty_node("d", {"event": event, "errno": 5, "sector": 50, "once": False})
    machine = launch(*words, "-device", "marvell-88se9485,id=card,addr=4", "-device",
                     "sf2281,bus=card.0,drive=d,rerror=report,werror=report")
    disk = Bridge(card_of(machine)).probe().disks()[0]
    command = ata.read_dma(48, 8) if error == ata.UNC else ata.write_dma(48, bytes(4096))
    completion, _ = disk.execute(command, check=False)
    assert (completion.status, completion.error, completion.lba) == (status, error, 48)
    other = ata.read_dma(56, 8) if error == ata.UNC else ata.write_dma(56, bytes(4096))
    assert not disk.execute(other)[0].failed
