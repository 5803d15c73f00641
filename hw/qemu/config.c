/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI configuration space of the card.
 *
 * Layout: power management at 0x48, MSI at 0x50, PCI Express at 0x70. The last two are where the
 * silicon has them: the Linux driver reads the link status at 0x82 without looking for a
 * capability, so the Express capability is there on conventional and root buses as well.
 */
#include "glue.h"

#include "hw/pci/pcie.h"

#define PM_OFFSET 0x48
#define MSI_OFFSET 0x50
#define EXPRESS_OFFSET 0x70

#define LINK_SPEED_5GT 2
#define LINK_WIDTH_X4 4
#define LINK_SPEEDS_TO_5GT (PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB)

enum { POWER_D0 = 0, POWER_D3HOT = 3 };

bool revo_is_awake(const RevoCard *card) {
  return card->power_state == POWER_D0;
}

static bool add_power_management(PCIDevice *pci, Error **errp) {
  int pos = pci_add_capability(pci, PCI_CAP_ID_PM, PM_OFFSET, PCI_PM_SIZEOF, errp);

  if (pos < 0)
    return false;
  pci_set_word(pci->config + pos + PCI_PM_PMC, 3); /* version 1.2: D0 and D3hot, no PME */
  pci_set_word(pci->config + pos + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
  pci_set_word(pci->wmask + pos + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
  return true;
}

static bool add_msi(PCIDevice *pci, Error **errp) {
  Error *why = NULL;
  int ret = msi_init(pci, MSI_OFFSET, 1, true, false, &why);

  if (ret == -ENOTSUP) { /* a machine without MSI: INTx serves */
    error_free(why);
    return true;
  }
  error_propagate(errp, why);
  return ret >= 0;
}

static bool add_express(PCIDevice *pci, Error **errp) {
  PCIBus *bus = pci_get_bus(pci);
  bool integrated = pci_bus_is_express(bus) && pci_bus_is_root(bus);
  uint8_t *cap = pci->config + EXPRESS_OFFSET;

  if (pcie_cap_init(pci, EXPRESS_OFFSET, integrated ? PCI_EXP_TYPE_RC_END : PCI_EXP_TYPE_ENDPOINT,
                    0, errp) < 0)
    return false;
  pci_set_long(cap + PCI_EXP_LNKCAP, LINK_SPEED_5GT | LINK_WIDTH_X4 << 4);
  pci_set_word(cap + PCI_EXP_LNKSTA, LINK_SPEED_5GT | LINK_WIDTH_X4 << 4);
  pci_set_long(cap + PCI_EXP_LNKCAP2, LINK_SPEEDS_TO_5GT);
  pci_set_word(cap + PCI_EXP_LNKCTL2, LINK_SPEED_5GT);
  pcie_cap_flr_init(pci);
  pcie_cap_deverr_init(pci);
  return true;
}

static void set_ids(RevoCard *card) {
  uint8_t *config = card->pci.config;

  pci_config_set_vendor_id(config, card->vendor_id);
  pci_config_set_device_id(config, card->device_id);
  pci_config_set_revision(config, card->revision);
  pci_set_word(config + PCI_SUBSYSTEM_VENDOR_ID, card->subsystem_vendor_id);
  pci_set_word(config + PCI_SUBSYSTEM_ID, card->subsystem_id);
  pci_config_set_interrupt_pin(config, 1);
}

bool revo_config_init(RevoCard *card, Error **errp) {
  set_ids(card);
  if (!add_power_management(&card->pci, errp) || !add_msi(&card->pci, errp))
    return false;
  if (!add_express(&card->pci, errp)) {
    msi_uninit(&card->pci);
    return false;
  }
  return true;
}

void revo_config_exit(RevoCard *card) {
  pcie_cap_exit(&card->pci);
  msi_uninit(&card->pci);
}

/* INTx follows the level while it is in charge; MSI gets an edge when it takes over a high level.
 */
void revo_irq_update(RevoCard *card) {
  bool awake = revo_is_awake(card);
  bool msi_live = awake && msi_enabled(&card->pci);
  bool takes_over = msi_live && !card->msi_live;

  card->msi_live = msi_live;
  pci_set_irq(&card->pci, card->irq_level && awake && !msi_live);
  if (takes_over && card->irq_level)
    msi_notify(&card->pci, 0);
}

static void update_power_state(RevoCard *card) {
  uint8_t *control = card->pci.config + PM_OFFSET + PCI_PM_CTRL;
  uint8_t wanted = pci_get_word(control) & PCI_PM_CTRL_STATE_MASK;

  if (wanted == POWER_D0 || wanted == POWER_D3HOT) {
    card->power_state = wanted;
    return;
  }
  /* D1 and D2 are not supported: the state stays what it was. */
  pci_word_test_and_clear_mask(control, PCI_PM_CTRL_STATE_MASK);
  pci_word_test_and_set_mask(control, card->power_state);
}

void revo_config_write(PCIDevice *pci, uint32_t addr, uint32_t value, int len) {
  RevoCard *card = REVO_HBA(pci);

  pci_default_write_config(pci, addr, value, len);
  update_power_state(card);
  pcie_cap_flr_write_config(pci, addr, value, len);
  revo_irq_update(card);
}

/* QEMU's PCI core resets the header and MSI only. */
void revo_config_reset(RevoCard *card) {
  uint8_t *express = card->pci.config + EXPRESS_OFFSET;

  pci_word_test_and_clear_mask(card->pci.config + PM_OFFSET + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
  card->power_state = POWER_D0;
  pcie_cap_deverr_reset(&card->pci);
  pci_set_word(express + PCI_EXP_LNKCTL2, LINK_SPEED_5GT);
  card->msi_live = false;
}

void revo_config_loaded(RevoCard *card) {
  update_power_state(card);
  card->msi_live = revo_is_awake(card) && msi_enabled(&card->pci);
  pci_set_irq(&card->pci, card->irq_level && revo_is_awake(card) && !card->msi_live);
}
