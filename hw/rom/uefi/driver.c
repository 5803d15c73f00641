// SPDX-License-Identifier: GPL-2.0-or-later
//
// UEFI driver of the card (UEFI specification 2.10, chapter 11): binds to the PCI function, starts
// the bridge and publishes ATA Pass Thru, and Ext SCSI Pass Thru when the card shows a volume over
// its SSDs. The firmware's own drivers for ATA and SCSI disks do the rest: a handle, a device path
// and Block I/O for each disk.
//
// When boot services end the bridge is stopped, so that the system's own driver finds it idle.
#include "boot.h"
#include "card.h"

enum { CLASS_MASS_STORAGE = 0x01 };

EFI_BOOT_SERVICES *boot_services;
EFI_GUID ata_pass_thru_guid = ATA_PASS_THRU_GUID;
EFI_GUID pci_io_guid = EFI_PCI_IO_PROTOCOL_GUID;
static EFI_GUID scsi_pass_thru_guid = SCSI_PASS_THRU_GUID;
static EFI_GUID binding_guid = EFI_DRIVER_BINDING_PROTOCOL_GUID;
static EFI_GUID component_name_guid = EFI_COMPONENT_NAME_PROTOCOL_GUID;
static EFI_GUID component_name2_guid = EFI_COMPONENT_NAME2_PROTOCOL_GUID;
static EFI_GUID loaded_image_guid = EFI_LOADED_IMAGE_PROTOCOL_GUID;
static EFI_DRIVER_BINDING_PROTOCOL binding;

static BOOLEAN is_card(EFI_PCI_IO_PROTOCOL *pci) {
  UINT32 config[3];

  if (EFI_ERROR(pci->Pci.Read(pci, EfiPciIoWidthUint32, 0, 3, config)))
    return FALSE;
  return card_name((UINT16)config[0], (UINT16)(config[0] >> 16)) &&
         config[2] >> 24 == CLASS_MASS_STORAGE;
}

static EFI_STATUS open_pci(EFI_HANDLE controller, EFI_PCI_IO_PROTOCOL **pci) {
  return boot_services->OpenProtocol(controller, &pci_io_guid, (VOID **)pci,
                                     binding.DriverBindingHandle, controller,
                                     EFI_OPEN_PROTOCOL_BY_DRIVER);
}

static VOID close_pci(EFI_HANDLE controller) {
  boot_services->CloseProtocol(controller, &pci_io_guid, binding.DriverBindingHandle, controller);
}

static EFI_STATUS EFIAPI supported(EFI_DRIVER_BINDING_PROTOCOL *self, EFI_HANDLE controller,
                                   EFI_DEVICE_PATH_PROTOCOL *remaining) {
  EFI_PCI_IO_PROTOCOL *pci;
  EFI_STATUS status = open_pci(controller, &pci);

  (void)self;
  (void)remaining;
  if (EFI_ERROR(status))
    return status;
  status = is_card(pci) ? EFI_SUCCESS : EFI_UNSUPPORTED;
  close_pci(controller);
  return status;
}

static VOID EFIAPI leave_boot_services(EFI_EVENT event, VOID *context) {
  (void)event;
  hba_quiesce(&((Card *)context)->hba);
}

static EFI_STATUS enable_function(Card *card, EFI_PCI_IO_PROTOCOL *pci) {
  EFI_STATUS status = pci->Attributes(pci, EfiPciIoAttributeOperationGet, 0, &card->old_attributes);

  if (EFI_ERROR(status))
    return status;
  status = pci->Attributes(pci, EfiPciIoAttributeOperationEnable,
                           EFI_PCI_IO_ATTRIBUTE_MEMORY | EFI_PCI_IO_ATTRIBUTE_BUS_MASTER, NULL);
  if (!EFI_ERROR(status))  // refused where it is not needed
    pci->Attributes(pci, EfiPciIoAttributeOperationEnable, EFI_PCI_IO_ATTRIBUTE_DUAL_ADDRESS_CYCLE,
                    NULL);
  return status;
}

static VOID restore_function(Card *card, EFI_PCI_IO_PROTOCOL *pci) {
  pci->Attributes(pci, EfiPciIoAttributeOperationSet, card->old_attributes, NULL);
}

static EFI_STATUS publish_volume(Card *card, EFI_HANDLE controller) {
  if (!card->hba.volumes)
    return EFI_SUCCESS;
  scsi_init(card);
  return boot_services->InstallProtocolInterface(&controller, &scsi_pass_thru_guid,
                                                 EFI_NATIVE_INTERFACE, &card->scsi);
}

static EFI_STATUS withdraw_volume(Card *card, EFI_HANDLE controller) {
  return card->hba.volumes ? boot_services->UninstallProtocolInterface(
                                 controller, &scsi_pass_thru_guid, &card->scsi)
                           : EFI_SUCCESS;
}

static EFI_STATUS publish(Card *card, EFI_HANDLE controller) {
  EFI_STATUS status = boot_services->CreateEvent(EVT_SIGNAL_EXIT_BOOT_SERVICES, TPL_NOTIFY,
                                                 leave_boot_services, card, &card->exit_event);

  if (EFI_ERROR(status))
    return status;
  status = publish_volume(card, controller);
  if (!EFI_ERROR(status)) {
    ata_init(card);
    status = boot_services->InstallProtocolInterface(&controller, &ata_pass_thru_guid,
                                                     EFI_NATIVE_INTERFACE, &card->ata);
    if (EFI_ERROR(status))
      withdraw_volume(card, controller);
  }
  if (EFI_ERROR(status))
    boot_services->CloseEvent(card->exit_event);
  return status;
}

static EFI_STATUS start_card(Card *card, EFI_HANDLE controller, EFI_PCI_IO_PROTOCOL *pci) {
  EFI_STATUS status = enable_function(card, pci);

  if (EFI_ERROR(status))
    return status;
  status = hba_open(&card->hba, pci);
  if (!EFI_ERROR(status)) {
    status = publish(card, controller);
    if (EFI_ERROR(status))
      hba_close(&card->hba);
  }
  if (EFI_ERROR(status))
    restore_function(card, pci);
  return status;
}

static EFI_STATUS EFIAPI start(EFI_DRIVER_BINDING_PROTOCOL *self, EFI_HANDLE controller,
                               EFI_DEVICE_PATH_PROTOCOL *remaining) {
  EFI_PCI_IO_PROTOCOL *pci;
  Card *card;
  EFI_STATUS status = open_pci(controller, &pci);

  (void)self;
  (void)remaining;
  if (EFI_ERROR(status))
    return status;
  status = boot_services->AllocatePool(EfiBootServicesData, sizeof(*card), (VOID **)&card);
  if (!EFI_ERROR(status)) {
    set_mem(card, sizeof(*card), 0);
    status = start_card(card, controller, pci);
    if (EFI_ERROR(status))
      boot_services->FreePool(card);
  }
  if (EFI_ERROR(status))
    close_pci(controller);
  return status;
}

static EFI_STATUS EFIAPI stop(EFI_DRIVER_BINDING_PROTOCOL *self, EFI_HANDLE controller,
                              UINTN children, EFI_HANDLE *child_handles) {
  AtaPassThru *ata;
  EFI_STATUS status = boot_services->HandleProtocol(controller, &ata_pass_thru_guid, (VOID **)&ata);

  (void)self;
  (void)children;
  (void)child_handles;
  if (EFI_ERROR(status) || !ata_is_ours(ata))
    return EFI_DEVICE_ERROR;
  Card *card = (Card *)ata;

  // Disconnects the drivers of the disks, or fails and leaves everything as it is.
  if (EFI_ERROR(withdraw_volume(card, controller)))
    return EFI_DEVICE_ERROR;
  status = boot_services->UninstallProtocolInterface(controller, &ata_pass_thru_guid, ata);
  if (EFI_ERROR(status)) {
    publish_volume(card, controller);
    return EFI_DEVICE_ERROR;
  }

  boot_services->CloseEvent(card->exit_event);
  hba_close(&card->hba);
  restore_function(card, card->hba.pci);
  close_pci(controller);
  boot_services->FreePool(card);
  return EFI_SUCCESS;
}

static EFI_DRIVER_BINDING_PROTOCOL binding = {supported, start, stop, 0x10, NULL, NULL};

static EFI_STATUS EFIAPI unload(EFI_HANDLE image) {
  EFI_HANDLE *handles = NULL;
  UINTN count = 0;
  EFI_STATUS status =
      boot_services->LocateHandleBuffer(ByProtocol, &ata_pass_thru_guid, NULL, &count, &handles);

  for (UINTN i = 0; !EFI_ERROR(status) && i < count; i++) {
    AtaPassThru *ata;

    if (!EFI_ERROR(boot_services->HandleProtocol(handles[i], &ata_pass_thru_guid, (VOID **)&ata)) &&
        ata_is_ours(ata) && EFI_ERROR(boot_services->DisconnectController(handles[i], image, NULL)))
      status = EFI_ACCESS_DENIED;
  }
  if (handles)
    boot_services->FreePool(handles);
  if (status == EFI_ACCESS_DENIED)
    return status;
  boot_services->UninstallProtocolInterface(image, &component_name2_guid, &component_name2);
  boot_services->UninstallProtocolInterface(image, &component_name_guid, &component_name);
  return boot_services->UninstallProtocolInterface(image, &binding_guid, &binding);
}

static EFI_STATUS install(EFI_HANDLE image, EFI_GUID *guid, VOID *interface) {
  return boot_services->InstallProtocolInterface(&image, guid, EFI_NATIVE_INTERFACE, interface);
}

EFI_STATUS efi_main(EFI_HANDLE image, EFI_SYSTEM_TABLE *system) {
  EFI_LOADED_IMAGE_PROTOCOL *loaded;
  EFI_STATUS status;

  boot_services = system->BootServices;
  binding.ImageHandle = image;
  binding.DriverBindingHandle = image;
  status = install(image, &binding_guid, &binding);
  if (EFI_ERROR(status))
    return status;
  // Names are a comfort; the driver works without.
  install(image, &component_name_guid, &component_name);
  install(image, &component_name2_guid, &component_name2);
  if (!EFI_ERROR(boot_services->HandleProtocol(image, &loaded_image_guid, (VOID **)&loaded)))
    loaded->Unload = (EFI_IMAGE_UNLOAD)(VOID *)unload;
  return EFI_SUCCESS;
}
