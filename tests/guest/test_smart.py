# SPDX-License-Identifier: GPL-2.0-or-later
"""smartctl and sg3_utils on the card's disks: no warning, the exit status of a healthy disk, nothing in
the kernel's log."""

import re

import pytest

from harness import Guest, Options

KERNEL_SOURCES = ("ata", "sas", "scsi", "mvsas", "sd ")

#: What smartctl prints when it does not believe a drive, or does not understand it.
COMPLAINT = re.compile(
    r"warning[:!]|checksum|unknown|invalid|unexpected|error:|FAILING|mandatory|not in smartctl database",
    re.IGNORECASE,
)

#: What firmware 2.15 to 2.25 shows.
IDS = [1, 5, 9, 12, 171, 172, 174, 177, 181, 182, 187]
IDS += [194, 195, 196, 201, 204, 230, 231, 233, 234, 241, 242]


def complaints(guest):
    return [line for line in guest.kernel_log("warn") if any(word in line for word in KERNEL_SOURCES)]


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    """One boot for the whole module, with the SSDs' state in a node."""
    state = tmp_path_factory.mktemp("state") / "state.img"
    with open(state, "wb") as image:
        image.truncate(8 << 20)
    node = f"driver=file,filename={state},node-name=st"
    with Guest(Options(card="state=st", qemu=["-blockdev", node])) as running:
        yield running


def smartctl(guest, options, status=0):
    result = guest.run(f"smartctl {options}", check=False)
    assert result.status == status, result.stdout
    return result.stdout


def attribute(text, number):
    """(value, worst, threshold, raw) of a line of smartctl -A."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == str(number) and len(words) >= 10:
            return int(words[3]), int(words[4]), int(words[5]), " ".join(words[9:])
    raise AssertionError(f"no attribute {number} in:\n{text}")


def test_c033_known_drive_and_attributes(guest):
    """C033: the drive database knows the drive; no attribute is unknown, no checksum is wrong."""
    text = smartctl(guest, "-a /dev/ssd0")
    assert "Model Family:     SandForce Driven SSDs" in text
    assert "Device Model:     OCZ-REVODRIVE3 X2" in text
    assert not [line for line in text.splitlines() if COMPLAINT.search(line)]
    for number in IDS:
        attribute(text, number)
    assert attribute(text, 1) == (120, 120, 50, "0/0")
    assert attribute(text, 194)[3] == "30 (Min/Max 30/30)"
    assert re.match(r"0h\+0\dm\+", attribute(text, 9)[3])
    presets = guest.run("smartctl -P show /dev/ssd0").stdout
    assert "Drive found in smartmontools Database" in presets


def test_all_that_smartctl_can_show(guest):
    # 4: SCT error recovery control was asked for, which these drives do not have. All else is there.
    text = smartctl(guest, "-x /dev/ssd1", status=4)
    smartctl(guest, "-l scterc /dev/ssd1", status=4)
    logs = "xerror,error xselftest directory scttemp devstat defects sataphy".split()
    smartctl(guest, " ".join(["-a", "-g all", *(f"-l {log}" for log in logs), "/dev/ssd1"]))
    assert not [line for line in text.splitlines() if COMPLAINT.search(line)]
    assert "Temperature History Size (Index):    478 (" in text
    assert "SMART Extended Self-test Log Version: 1 (1 sectors)" in text
    assert re.search(r"0x000a  2 +\d+  Device-to-host register FISes sent due to a COMRESET", text)
    for log in ("0x07", "0x09", "0x10", "0x11", "0xb7", "0xe0", "0xe1", "0x80-0x9f"):
        assert re.search(rf"^{log} ", text, re.MULTILINE), log


def test_c034_verdict(guest):
    """C034: from the registers, not from the attributes; and failing when the life is at its end."""
    text = smartctl(guest, "-H /dev/ssd2")
    assert "test result: PASSED" in text and not COMPLAINT.search(text)
    member = "/machine/peripheral/card0/port2"
    guest.qmp("qom-set", path=member, property="smart-life-left", value=10)
    text = smartctl(guest, "-H /dev/ssd2", status=8 | 16)  # disk failing, attribute at its threshold
    assert "FAILED!" in text and "231 SSD_Life_Left" in text and "based on" not in text
    guest.qmp("qom-set", path=member, property="smart-life-left", value=100)
    smartctl(guest, "-H /dev/ssd2")


def test_self_tests(guest):
    """A short test takes a minute of the guest's time; an extended one can be stopped."""
    assert "Please wait 1 minutes" in smartctl(guest, "-t short /dev/ssd0")
    assert "Please wait 48 minutes" in smartctl(guest, "-t long /dev/ssd1")
    assert "Self-test routine in progress" in smartctl(guest, "-c /dev/ssd1")
    smartctl(guest, "-X /dev/ssd1")
    assert re.search(r"Extended offline +Aborted by host +90%", smartctl(guest, "-l selftest /dev/ssd1"))
    selected = smartctl(guest, "-t select,0-99 /dev/ssd3")
    assert "SPAN" in selected
    guest.run("sleep 61", timeout=300)
    done = r"# 1  Short offline +Completed without error +00%"
    assert re.search(done, smartctl(guest, "-l selftest /dev/ssd0"))
    assert re.search(done, smartctl(guest, "-l xselftest /dev/ssd0"))
    assert re.search(r"Selective offline +Completed without error", smartctl(guest, "-l selftest /dev/ssd3"))
    assert "Not_testing" in smartctl(guest, "-l selective /dev/ssd3")


def test_sg_tools(guest):
    assert "OCZ-REVODRIVE3 X2" in guest.run("sg_sat_identify -r /dev/ssd0 | strings -el; hdparm -I /dev/ssd0").stdout
    counters = guest.run("sg_sat_phy_event /dev/ssd0").stdout
    assert "COMRESET" in counters
    guest.run("sg_sat_phy_event --reset /dev/ssd0")
    guest.run("sg_sat_read_gplog --log=0 --count=1 /dev/ssd0")
    guest.run("sg_sat_read_gplog --log=7 --count=1 /dev/ssd0")
    guest.run("sg_sat_read_gplog --log=0x11 --count=1 --dma /dev/ssd0")


def test_counters_move(guest):
    """Host writes and reads count in GiB; flash writes of zeroes are less, and do not fall."""
    before = smartctl(guest, "-A /dev/ssd3")
    for _ in range(2):
        guest.run("dd if=/dev/zero of=/dev/ssd3 bs=1M count=1000 oflag=direct")
        guest.run("dd if=/dev/ssd3 of=/dev/null bs=1M iflag=direct")
    after = smartctl(guest, "-A /dev/ssd3")
    for number, least in ((233, 0), (234, 1), (241, 1), (242, 1)):
        assert int(attribute(after, number)[3]) >= int(attribute(before, number)[3]) + least


def test_nothing_in_the_kernel_log(guest):
    assert complaints(guest) == []


def written(guest):
    """Bytes that the host and the flash of the first SSD have written."""
    path = "/machine/peripheral/card0/port0"
    sectors, flash = (guest.qmp("qom-get", path=path, property=name) for name in ("write-sectors", "nand-write-bytes"))
    return 512 * sectors, flash


@pytest.mark.parametrize("buffers,least,most", [("--zero_buffers", 0.10, 0.20), ("--refill_buffers", 0.99, 1.12)])
def test_c037_write_amplification(guest, buffers, least, most):
    """C037: zeroes cost the flash 0.14 of what the host writes; random data all of it, and parity on top."""
    host, flash = written(guest)
    guest.run(f"fio --name=w --filename=/dev/ssd0 --direct=1 --rw=write --bs=128k --size=96m {buffers}")
    host_after, flash_after = written(guest)
    assert host_after - host == 96 << 20
    assert least <= (flash_after - flash) / (host_after - host) <= most
