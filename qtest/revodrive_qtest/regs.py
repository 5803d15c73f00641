# SPDX-License-Identifier: GPL-2.0-or-later
"""Register offsets and bits of the 88SE94xx as Linux's mvsas names them.

Source: drivers/scsi/mvsas/{mv_94xx.h,mv_defs.h,mv_chips.h} of Linux 6.1. Chip registers are offsets
in BAR 2; the others are offsets from a core's base.
"""

BAR = 2
CORE_BASE = (0x20000, 0x24000)
PHYS_PER_CORE = 4

# Chip
CHIP_CONFIG = 0x10104
GBL_INT_STAT, GBL_CTL, GBL_PI = 0x10200, 0x10204, 0x1020C
GBL_OTHERS = (0x10210, 0x10214, 0x10218)
GBL_CORE = (1 << 18, 1 << 19)
GBL_ENABLE = 0xC0000
SGPIO = 0x0C200  # +0x100 for core 1
SPI_CTRL = 0x0C800

# Core
PORTS_IMP, CTL, PCS = 0x09C, 0x100, 0x104
CMD_LIST, RX_FIS, STP_REG_SET = 0x108, 0x110, 0x118
TX_CFG, TX_BASE, TX_PROD_IDX, TX_CONS_IDX = 0x120, 0x124, 0x12C, 0x130
RX_CFG, RX_BASE, RX_CONS_IDX = 0x134, 0x138, 0x140
INT_COAL, INT_COAL_TMOUT = 0x148, 0x14C
INT_STAT, INT_MASK = 0x150, 0x154
INT_STAT_SRS, INT_MASK_SRS = (0x158, 0x160), 0x15C
NON_NCQ_ERR = (0x168, 0x16C)
CMD_ADDR, CMD_DATA = 0x170, 0x174
PA_VSR_ADDR, PA_VSR_PORT = 0x290, 0x294


def p_int_stat(phy):
    return 0x180 + 8 * phy


def p_int_mask(phy):
    return 0x184 + 8 * phy


def ser_ctlstat(phy):
    return 0x1D0 + 4 * phy


def cfg_addr(phy):
    return 0x200 + 8 * phy


def vsr_addr(phy):
    return 0x250 + 8 * phy


CTL_RESET = 1 << 5
PCS_CMD_EN, PCS_CMD_RST = 1 << 0, 1 << 1
PCS_RUN = 0x59
RING_ENABLE = 1 << 16
TX_ENTRIES, RX_ENTRIES = 2048, 1024
RX_NONE = 0xFFF

INT_DONE, INT_CI_STOP, INT_SRS, INT_NCQ_ERROR = 1 << 0, 1 << 1, 1 << 3, 1 << 25
INT_RUN_MASK = 0x0E00FFFB


def int_port(phy):
    return 1 << (8 + phy)


# Phy events (P_INT_STAT)
RDY_CH, ID_DONE, COMWAKE, BROAD_CH, POOF, SIG_FIS = 1, 1 << 2, 1 << 7, 1 << 8, 1 << 12, 1 << 16
LINK_UP_SATA = RDY_CH | COMWAKE | SIG_FIS
LINK_DOWN = RDY_CH | POOF
PHY_MASK = 0x00C00105

# SER_CTLSTAT
PHY_RST, PHY_RST_HARD, PHY_READY = 1 << 0, 1 << 1, 1 << 20
SATA_6G_READY = 0x00120000

# Indirect addresses
PHYR_SATA_CTL, PHYR_PHY_STAT, PHYR_SATA_SIG = 0x18, 0x1C, 0x20
VSR_PHY_CONFIG, VSR_PHY_STATUS = 0x08, 0x0C
VSR_PHY_DISABLE = 1 << 23
COMMAND_ACTIVE = 0x300

# TX entry
TX_SATA, TX_INITIATOR = 3 << 29, 1 << 28
# RX entry
RX_DONE, RX_ERR, RX_RSP, RX_GOOD = 1 << 16, 1 << 17, 1 << 18, 1 << 23
RX_SLOT_MASK = 0xFFF

# Command header flags
HDR_FPDMA, HDR_ATAPI = 1 << 6, 1 << 5
MAX_PRD_READ = 255

# Received-FIS area
RX_FIS_BYTES = 0x800 + 17 * 0x100


def d2h_offset(register_set):
    return 0x800 + 0x100 * register_set + 0x40


# Error information, dword 0
ERR_TFILE, ERR_OPEN_TO, ERR_DATA_OVER_UNDER = 1 << 24, 1 << 11, 1 << 16
