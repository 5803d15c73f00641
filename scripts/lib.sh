# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Shared helpers of the scripts in this folder. Sourced, never run. The caller has set -euo pipefail.
#
# A step that takes long runs under `logged`: its output goes to .deps/log/NAME.log, the terminal gets one line
# when it starts, one every ten seconds, and one when it ends; a failure shows the end of the log and where it is.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # used by the scripts that source this file
{
    DEPS=$ROOT/.deps
    LOGS=$DEPS/log
    STAMPS=$DEPS/stamps
    PYTHON=/usr/bin/python3
}

say() { printf '%s\n' "$*"; }
step() { printf '== %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }

# die MESSAGE [HINT…]: one line that says what is wrong, then what to do about it.
die() {
    printf '%s: error: %s\n' "${0##*/}" "$1" >&2
    shift
    local hint
    for hint in "$@"; do printf '  %s\n' "$hint" >&2; done
    exit 1
}

# logged NAME LABEL COMMAND…
logged() {
    local label=$2 log=$LOGS/$1.log begin=$SECONDS status=0
    shift 2
    step "$label"
    ticked "$log" "$@" || status=$?
    if ((status != 0)); then
        printf '%s: error: this step failed with status %d: %s\n' "${0##*/}" "$status" "$label" >&2
        printf '  the end of its log:\n' >&2
        tail -n 20 "$log" | sed 's/^/    | /' >&2
        printf '  whole log: %s\n' "$log" >&2
        return "$status"
    fi
    say "   done in $((SECONDS - begin)) s"
}

# ticked LOG COMMAND…: runs it with its output in LOG and a sign of life every ten seconds.
ticked() {
    local log=$1 ticker status=0
    shift
    mkdir -p "$LOGS"
    : >"$log"
    tick "$log" "$SECONDS" &
    ticker=$!
    "$@" >"$log" 2>&1 </dev/null || status=$?
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    return "$status"
}

tick() {
    exec 9>&- # the lock of scripts/setup must not outlive it in a sleeping child
    local last
    while sleep 10; do
        last=$(tail -n 1 "$1" 2>/dev/null | sed 's/.*\r//' | cut -c1-90)
        say "   still working ($((SECONDS - $2)) s)${last:+: $last}"
    done
}

# Stamps: a step is up to date when the text it depends on is the one it was last done for.
stamp_is() { [[ -f $STAMPS/$1 && $(<"$STAMPS/$1") == "$2" ]]; }
stamp_set() {
    mkdir -p "$STAMPS"
    printf '%s\n' "$2" >"$STAMPS/$1"
}

# package_list FILE: the package names, without the reasons.
package_list() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1" | tr -d '[:blank:]'; }

# usage_from FILE: prints the comment block that follows the license line of a script.
usage_from() { sed -n '3,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$1"; }
