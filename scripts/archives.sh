# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For scripts that make a Debian system of their own: where this machine gets its packages from. Sourced after
# lib.sh, never run.

# debian_sources: deb lines of the Debian archives that this machine's apt uses.
# shellcheck disable=SC2016  # fields of apt, not variables of ours
debian_sources() {
    apt-get indextargets --format '$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n 's/^Debian|//p' | sort -u
}

# debian_settings: mmdebstrap options for the few download settings (a proxy, a frozen mirror's dates) of this machine.
debian_settings() {
    apt-config dump | grep -E '^Acquire::((https?)::Proxy|Check-Valid-Until|Check-Date) ' |
        sed -n 's/^\(Acquire::[^ ]*\) "\(.\{1,\}\)";$/--aptopt=\1 "\2"/p'
}

# make_debian FOLDER VARIANT [MMDEBSTRAP-OPTION…]: a system of this machine's release.
make_debian() {
    local folder=$1 variant=$2 list codename options=()
    shift 2
    list=$(debian_sources)
    [[ $list ]] || { echo "apt names no Debian archive here; run apt-get update"; return 1; }
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mapfile -t options < <(debian_settings)
    options+=(--dpkgopt=force-unsafe-io)
    [[ $list == *https:* ]] && options+=(--include=ca-certificates)
    options+=(--mode=root "--variant=$variant" --skip=check/empty "$@")
    # Its helpers are started for each package: Debian's Python, not one that a user put in front.
    PATH=/usr/sbin:/usr/bin:/sbin:/bin mmdebstrap "${options[@]}" "$codename" "$folder" - <<<"$list"
}
