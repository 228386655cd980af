#!/usr/bin/env bash
# Installs what is missing of the named groups of deploy/packages.txt: build, test, lint.
# Debian and Ubuntu; non-interactive; does nothing when all is there.
#
#   deploy/install.sh [GROUP ...]      default: build
#
# FATHOM_INSTALL=off: install nothing, trust that all is there.
set -euo pipefail

list=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/packages.txt
readonly list

say() { printf 'install: %s\n' "$*" >&2; }

groups_known() { awk '!/^#/ && NF { print $1 }' "$list" | sort -u; }

packages_of() {  # GROUP...
  awk -v wanted=" $* " '!/^#/ && NF && index(wanted, " " $1 " ") { print $2 }' "$list" | sort -u
}

# Those of the packages on standard input that dpkg does not have.
missing_of() {
  local package
  while read -r package; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed* ]] ||
      printf '%s\n' "$package"
  done
}

main() {
  local group
  if [[ ${1:-} == --help || ${1:-} == -h ]]; then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    return 0
  fi
  [[ $# -gt 0 ]] || set -- build
  for group; do
    groups_known | grep -qxF -e "$group" || {
      say "no group '$group'; there are: $(groups_known | paste -sd ' ')"
      return 2
    }
  done
  [[ ${FATHOM_INSTALL:-on} != off ]] || return 0

  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "this is neither Debian nor Ubuntu. Install what these Debian packages hold, then run" \
      "again with FATHOM_INSTALL=off:"
    packages_of "$@" | sed 's/^/  /' >&2
    return 6
  fi

  local missing
  mapfile -t missing < <(packages_of "$@" | missing_of)
  [[ ${#missing[@]} -gt 0 ]] || return 0

  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || {
      say "not root, and there is no sudo. Have an administrator run:"
      say "  apt-get install --no-install-recommends ${missing[*]}"
      return 6
    }
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

main "$@"
