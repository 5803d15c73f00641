// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the numbers of a product come from: built-in profiles, files on top of them, single values.
#include <cstdio>
#include <string>

#include <unistd.h>

#include "card/builtin_profiles.h"
#include "revodrive/profile.h"
#include "runner.h"

using namespace revodrive;

namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string &text) {
    int fd = mkstemps(path_, 4);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  ~TemporaryFile() { unlink(path_); }
  const char *path() const { return path_; }

 private:
  char path_[32] = "/tmp/revodrive-XXXXXX.ini";
};

std::string refusal(const char *source, const char *overrides) {
  rd_error error = {};
  Profile profile;
  ck_assert(!Profile::load(source, overrides, &profile, &error));
  return error.text;
}

void check_mentions(const std::string &text, std::initializer_list<const char *> words) {
  for (const char *word : words)
    ck_assert_msg(text.find(word) != std::string::npos, "no \"%s\" in: %s", word, text.c_str());
}

}  // namespace

START_TEST(every_builtin_profile_loads) {
  for (size_t i = 0; i < kBuiltinProfileCount; i++) {
    rd_error error = {};
    Profile profile;
    bool good = Profile::load(kBuiltinProfiles[i].name, nullptr, &profile, &error);
    ck_assert_msg(good, "%s", error.text);
    test::check_text(profile.name, kBuiltinProfiles[i].name);
  }
}
END_TEST

START_TEST(a_file_states_its_differences) {
  TemporaryFile file("[profile]\nbase=revodrive3-x2-480\n[sata]\nspeed=2\n");
  Profile profile, plain;
  ck_assert(Profile::load(file.path(), nullptr, &profile, nullptr));
  ck_assert(Profile::load(nullptr, nullptr, &plain, nullptr));
  ck_assert_uint_eq(profile.sata.speed, 2);
  ck_assert_uint_eq(profile.flash.channels, plain.flash.channels);
  ck_assert(profile.name != plain.name);
}
END_TEST

START_TEST(single_values_come_last) {
  Profile profile, other;
  ck_assert(Profile::load(nullptr, "sata.speed=1; flash.channels=4;", &profile, nullptr));
  ck_assert_uint_eq(profile.sata.speed, 1);
  ck_assert_uint_eq(profile.flash.channels, 4);
  ck_assert(Profile::load(nullptr, "sata.speed=2", &other, nullptr));
  ck_assert(profile.name != other.name);
}
END_TEST

START_TEST(c073_nothing_is_ignored) {
  check_mentions(refusal("none-such", nullptr), {"none-such", "revodrive3-x2-480"});
  check_mentions(refusal("/none/such.ini", nullptr), {"/none/such.ini"});
  check_mentions(refusal(nullptr, "sata.sped=2"), {"sped", "sata"});
  check_mentions(refusal(nullptr, "speed=2"), {"speed=2", "section.key=value"});
  check_mentions(refusal(nullptr, "sata.speed=9"), {"speed=9", "1 to 3"});
  check_mentions(refusal(nullptr, "sata.speed=2x"), {"speed=2x"});
  check_mentions(refusal(nullptr, "sata.speed=-1"), {"speed=-1"});
  TemporaryFile misspelt("[profile]\nbase=revodrive3-x2-480\n[sata]\nspede=2\n");
  check_mentions(refusal(misspelt.path(), nullptr), {misspelt.path(), "spede"});
  TemporaryFile incomplete("[sata]\nspeed=2\n");
  check_mentions(refusal(incomplete.path(), nullptr), {"(missing)"});
  TemporaryFile garbage("speed=2\n");
  check_mentions(refusal(garbage.path(), nullptr), {garbage.path()});
  TemporaryFile orphan("[profile]\nbase=none-such\n");
  check_mentions(refusal(orphan.path(), nullptr), {"none-such"});
}
END_TEST

START_TEST(geometry_is_possible) {
  check_mentions(refusal(nullptr, "pcie.lanes=3"), {"lanes=3", "power of two from 1 to 16"});
  check_mentions(refusal(nullptr, "pcie.max_payload_bytes=192"), {"192", "power of two"});
  check_mentions(refusal(nullptr, "flash.planes=3"), {"planes=3", "power of two from 1 to 4"});
  check_mentions(refusal(nullptr, "flash.page_bytes=9000"), {"page_bytes=9000", "power of two"});
  check_mentions(refusal(nullptr, "flash.block_pages=15"), {"block_pages=15", "16 to 4096"});
  for (const char *words : {"flash.codeword_bytes=3000", "flash.codeword_bytes=16384"})
    check_mentions(refusal(nullptr, words), {"codeword_bytes", "divide page_bytes=8192"});
}
END_TEST

START_TEST(messages_name_section_and_line) {
  check_mentions(refusal(nullptr, "sota.speed=2"), {"unknown section [sota]", "[pcie]", "[host]"});
  check_mentions(refusal(nullptr, "card.member_bytes=1t"), {"member_bytes=1t", "without a unit"});
  TemporaryFile misspelt("[profile]\nbase=revodrive3-x2-480\n\n[sata]\nspede=2\n");
  check_mentions(refusal(misspelt.path(), nullptr), {".ini:5: unknown key 'spede'"});
  TemporaryFile high(
      "[profile]\nbase=revodrive3-x2-480\n[flash]\nraise=1\n[sata]\nspeed=1\nspeed=9\n");
  check_mentions(refusal(high.path(), nullptr), {".ini:7: [sata] speed=9"});
  check_mentions(refusal("/dev/zero", nullptr), {"/dev/zero", "regular file"});
}
END_TEST

START_TEST(a_circle_of_bases_ends) {
  char path[] = "/tmp/revodrive-circle-XXXXXX.ini";
  int fd = mkstemps(path, 4);
  std::string text = std::string("[profile]\nbase=") + path + "\n";
  ck_assert_int_eq(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  std::string said = refusal(path, nullptr);
  unlink(path);
  check_mentions(said, {path, "on top of each other"});
}
END_TEST

int main() {
  return test::run_tests("profile",
                         {every_builtin_profile_loads, a_file_states_its_differences,
                          single_values_come_last, c073_nothing_is_ignored, geometry_is_possible,
                          messages_name_section_and_line, a_circle_of_bases_ends});
}
