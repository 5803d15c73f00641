/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the library gets into QEMU, and the check that it belongs there.
 *
 * Two doors lead to one registration: "-plugin revodrive.so" calls qemu_plugin_install() before
 * devices are created; with LD_PRELOAD a constructor asks QEMU to call back when it collects its
 * types, early enough for "-device help". A preloaded library meets other programs too (a shell, a
 * wrapper), so nothing here may need a symbol of QEMU just to be loaded: see weak_symbols.h.
 *
 * Device structures differ between QEMU builds. QEMU's own modules carry a stamp over version,
 * packager's version and configuration; we hold ourselves to the same one.
 */
#include "glue.h"

#include <dlfcn.h>
#include <link.h>

#include "qapi/qapi-commands-control.h"
#include "qemu-version.h"
#include "qemu/qemu-plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* True in qemu-system-*; false in qemu-img, shells and whatever else was preloaded into. */
static bool in_system_emulator(void) {
  return dlsym(RTLD_DEFAULT, "register_module_init") && dlsym(RTLD_DEFAULT, "pci_register_bar") &&
         dlsym(RTLD_DEFAULT, "type_register_static");
}

static char *running_version(void) {
  VersionInfo *(*query)(Error **) =
      (VersionInfo * (*)(Error **)) dlsym(RTLD_DEFAULT, "qmp_query_version");
  VersionInfo *info = query ? query(NULL) : NULL;

  /* Not freed: the function for that may be missing, and this QEMU is about to end. */
  return info ? g_strdup_printf("%" PRId64 ".%" PRId64 ".%" PRId64 " (%s)", info->qemu->major,
                                info->qemu->minor, info->qemu->micro, info->package)
              : g_strdup("of unknown version");
}

/* The first object is the program itself; any other could be one of ours. */
static int find_stamp(struct dl_phdr_info *object, size_t size, void *opaque) {
  static const char kStamp[] = DSO_STAMP_FUN_STR;
  bool *found = opaque;

  for (unsigned i = 0; i < object->dlpi_phnum && !*found; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    const void *start = (const void *)(object->dlpi_addr + segment->p_vaddr);
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_R)
      *found = memmem(start, segment->p_filesz, kStamp, sizeof(kStamp)) != NULL;
  }
  return 1;
}

/*
 * QEMU has the name of the stamp that it looks for in its modules among its constants. Works in any
 * QEMU: uses nothing that may be missing or different there.
 */
static bool stamp_matches(void) {
  bool found = false;

  dl_iterate_phdr(find_stamp, &found);
  if (found)
    return true;
  g_autofree char *running = running_version();
  fprintf(stderr,
          "revodrive: this plugin was built for QEMU %s and refuses to run in QEMU %s; rebuild it "
          "for the installed QEMU (scripts/setup, then ninja -C build)\n",
          QEMU_FULL_VERSION, running);
  return false;
}

/* The stamp says the same; this catches headers that were changed after configure. */
static bool sizes_match(void) {
  static const struct {
    const char *type;
    size_t bytes;
  } wanted[] = {
      {TYPE_PCI_DEVICE, sizeof(PCIDevice)},
      {TYPE_DEVICE, sizeof(DeviceState)},
      {TYPE_BUS, sizeof(BusState)},
  };

  for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
    size_t found = object_type_get_instance_size(wanted[i].type);
    if (found == wanted[i].bytes)
      continue;
    g_autofree char *running = running_version();
    fprintf(stderr,
            "revodrive: this plugin was built for QEMU %s, where type %s has %zu bytes; in this "
            "QEMU %s it has %zu; rebuild the plugin\n",
            QEMU_FULL_VERSION, wanted[i].type, wanted[i].bytes, running, found);
    return false;
  }
  return true;
}

static void register_types_once(void) {
  static bool done;

  if (done)
    return;
  done = true;
  revo_register_card_types();
  revo_register_member_types();
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv) {
  if (!in_system_emulator()) {
    fprintf(stderr, "revodrive: this plugin is for qemu-system-*, built with modules\n");
    return -1;
  }
  if (argc > 0) {
    fprintf(stderr,
            "revodrive: unknown plugin argument \"%s\": this plugin takes none; options of the "
            "card are properties of -device\n",
            argv[0]);
    return -1;
  }
  if (!stamp_matches() || !sizes_match())
    return -1;
  /* Another copy of this library, preloaded from elsewhere, may have come first. */
  if (!object_class_by_name(TYPE_REVO_MEMBER))
    register_types_once();
  return 0;
}

static void register_preloaded(void) {
  if (!stamp_matches())
    exit(EXIT_FAILURE);
  register_types_once();
}

static bool is_this_library(const char *path) {
  Dl_info self;

  if (!dladdr(&qemu_plugin_version, &self) || !self.dli_fname)
    return false;
  g_autofree char *ours = realpath(self.dli_fname, NULL);
  g_autofree char *theirs = realpath(path, NULL);
  return strcmp(path, self.dli_fname) == 0 || (ours && theirs && strcmp(ours, theirs) == 0);
}

/* Takes us out of LD_PRELOAD, so that programs started by QEMU do not load us. */
static bool drop_from_preload(void) {
  const char *preload = getenv("LD_PRELOAD");
  bool found = false;

  if (!preload)
    return false;
  g_auto(GStrv) entries = g_strsplit_set(preload, ": ", -1);
  g_autoptr(GString) rest = g_string_new(NULL);
  for (size_t i = 0; entries[i]; i++) {
    if (!*entries[i])
      continue;
    if (is_this_library(entries[i])) {
      found = true;
      continue;
    }
    g_string_append_printf(rest, "%s%s", rest->len ? ":" : "", entries[i]);
  }
  if (found && rest->len)
    setenv("LD_PRELOAD", rest->str, 1);
  else if (found)
    unsetenv("LD_PRELOAD");
  return found;
}

static void __attribute__((constructor)) preloaded(void) {
  if (in_system_emulator() && drop_from_preload())
    register_module_init(register_preloaded, MODULE_INIT_QOM);
}
