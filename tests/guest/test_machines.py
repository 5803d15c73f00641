# SPDX-License-Identifier: GPL-2.0-or-later
"""The same boot in other machines: each must find its disks, read and write, and say nothing at warning level."""

import pytest

from test_disks import complaints, verify_job

MACHINES = {
    "two-cards": {"cards": 2},
    "smp4-dma-above-4g": {"smp": 4, "memory": "5G"},
    "pc": {"machine": "pc"},
    "root-bus": {"root_bus": True},
    "iommu": {
        "qemu": "-device intel-iommu,intremap=off,caching-mode=on",
        "append": "intel_iommu=on,sm_off iommu.strict=1",
    },
    "timing-off": {"card": "timing=off"},
    "two-members": {"card": "revodrive3"},
}


@pytest.mark.parametrize("name", MACHINES)
def test_machine(boot, name):
    guest = boot(**MACHINES[name])
    disks = [line[2:] for line in guest.run("lsblk -dno NAME | grep ^sd").stdout.split()]
    assert len(disks) == {"two-cards": 8, "two-members": 2}.get(name, 4)
    guest.put("/tmp/verify.fio", verify_job(disks).replace("size=48m", "size=16m").encode())
    guest.run("fio /tmp/verify.fio")
    assert complaints(guest) == []
    if name == "iommu":
        assert any("DMAR: IOMMU enabled" in line or "Intel(R) Virtualization" in line for line in guest.kernel_log())
        group = guest.run("cat /sys/bus/pci/drivers/mvsas/0000:*/iommu_group/type").stdout.strip()
        assert group in ("DMA", "DMA-FQ")
    if name == "smp4-dma-above-4g":
        assert guest.run("grep -c '^1[0-9a-f]\\{8\\}-.*System RAM' /proc/iomem").stdout.strip() != "0"


def test_kexec(boot):
    """A second kernel takes over a chip that the first one left running."""
    guest = boot(kexec_disks=True)
    guest.run("echo marker | dd of=/dev/ssd3 seek=7 conv=fsync")
    guest.kexec()
    assert guest.run("dd if=/dev/ssd3 skip=7 count=1 2>/dev/null | head -c 6").stdout == "marker"
    assert complaints(guest) == []


def test_c050_sector_zero_of_null_backends(boot):
    """C050: a guest reads sector 0 of each member over null-co."""
    nodes = " ".join(
        f"-blockdev driver=null-co,read-zeroes=on,node-name=n{i},size=1073741824" for i in range(4)
    )
    members = " ".join(f"-device sf2281,bus=card0.0,port={i},drive=n{i}" for i in range(4))
    guest = boot(card="marvell-88se9485", disks=4, qemu=f"{nodes} {members}")
    for name in "abcd":
        assert guest.run(f"dd if=/dev/sd{name} count=1 2>/dev/null | tr -d '\\0' | wc -c").stdout.strip() == "0"
    assert complaints(guest) == []
