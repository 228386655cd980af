#!/usr/bin/env bash
# Installs what is missing, makes one optimised build and runs the quick tests.
#
#   deploy/test.sh           install, build, quick tests
#   deploy/test.sh --all     and all of the following
#   deploy/test.sh PART...   some of them, after an install:
#       quick         the release build and its quick tests
#       lint          clang-format, shellcheck, clang-tidy
#       long          tests that take minutes
#       builds        with LTO and at -O0
#       sanitizers    address and undefined behaviour, threads
#       faults        a sample of planted faults, which tests must catch
#       quickstart    with one seed
#
# Prints how long each part took. The last line is `N passed, N failed`; a part that is no CTest run
# (a build, a lint pass, the quickstart) counts as one. Exit 0 when nothing failed, else 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
readonly root

passed=0 failed=0 skipped=0
parts=() # "seconds name: outcome"

say() { printf '\n== %s\n' "$*"; }

finish() {
  local code=$?
  trap - EXIT
  [[ $code -eq 0 || $failed -gt 0 ]] || failed=1
  printf '\n'
  for part in "${parts[@]}"; do printf '%5d s  %s\n' "${part%% *}" "${part#* }"; done
  [[ $skipped -eq 0 ]] || printf '%d skipped, see above\n' "$skipped"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [[ $failed -eq 0 ]] && exit 0 || exit 1
}

# part NAME COMMAND...: runs and times it. Its failure does not end the script.
part() {
  local name=$1 start=$SECONDS outcome=ok
  shift
  say "$name"
  "$@" || outcome=FAILED
  parts+=("$((SECONDS - start)) $name: $outcome")
  [[ $outcome == ok ]]
}

# A part that counts as one test.
check() {
  if part "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# A part without which nothing after it can run.
must() {
  part "$@" || { failed=$((failed + 1)) && exit 1; }
}

configure() {  # PRESET
  local log=build/configure-$1.log
  mkdir -p build
  cmake --preset "$1" -DFATHOM_TESTS=ON >"$log" 2>&1 || {
    cat "$log"
    return 1
  }
}

build() {  # PRESET [TARGET...]
  local preset=$1 targets=()
  shift
  [[ $# -eq 0 ]] || targets=(--target "$@")
  configure "$preset" || return 1
  cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}"
}

# As a part that only counts when it fails: the tests of that build count.
built() {  # PRESET [TARGET...]
  part "build $1" build "$@" || { failed=$((failed + 1)) && return 1; }
}

# DIRECTORY CTEST-ARGUMENT...: counts what CTest counts.
run_ctest() {
  local directory=$1 log ok=0
  shift
  log=$(mktemp)
  ctest --test-dir "$directory" -j"$((2 * $(nproc) + 1))" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log" || ok=1
  local summary count=0 of=0
  summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$log" || true)
  if [[ $summary =~ \ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    count=${BASH_REMATCH[1]} of=${BASH_REMATCH[2]}
  else
    count=1 of=1
  fi
  local left_out
  left_out=$(grep -c '\*\*\*Skipped' "$log" || true)
  failed=$((failed + count)) skipped=$((skipped + left_out))
  passed=$((passed + of - count - left_out))
  rm -f "$log"
  return "$ok"
}

lint() {
  local sources headers
  mapfile -t sources < <(git ls-files -- '*.cpp')
  mapfile -t headers < <(git ls-files -- '*.h')
  check 'lint: clang-format' clang-format-14 --dry-run -Werror "${sources[@]}" "${headers[@]}"
  check 'lint: shellcheck' shellcheck deploy/*.sh .ci/run
  configure o0  # without precompiled headers, which clang cannot read
  check 'lint: clang-tidy' run-clang-tidy-14 -quiet -p build/o0 -j"$(nproc)" \
    "^$root/(core|launcher|dist|checkpoint|monitoring)/.*\.cpp\$"
}

# What -O2 hides: two types of one name show where the whole program is linked as one, and at -O0,
# where nothing is inlined away.
builds() {
  check 'link as one program, types compared (lto)' build lto fathom
  if built o0; then
    part 'unit tests at -O0' run_ctest build/o0 -LE '^long$' -E '^system_' || true
    part 'call stack at -O0' run_ctest build/o0 -R '^system_stack$' || true
  fi
}

sanitizers() {
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  export TSAN_OPTIONS=suppressions=$root/tests/dist/tsan.supp
  # Distinguishing Open MPI's leaks from ours needs full stacks of every allocation, which takes
  # most of the time. Of the tests that start hundreds of processes one checks for leaks too.
  local many='^system_(ranks|resume|ends|signals|errors|metrics|own_data|pipes|log)$'
  local leaks=suppressions=$root/tests/dist/lsan.supp:fast_unwind_on_malloc=0:print_suppressions=0
  if built asan; then
    LSAN_OPTIONS=$leaks part 'tests under asan and ubsan, with leaks' \
      run_ctest build/asan -LE '^long$' -E "$many" || true
    ASAN_OPTIONS=detect_leaks=0 part 'system tests under asan and ubsan' \
      run_ctest build/asan -R "$many" || true
  fi
  if built tsan tests/dist/all tests/monitoring/all; then
    part 'dist under tsan' run_ctest build/tsan/tests/dist || true
    part 'monitoring under tsan' run_ctest build/tsan/tests/monitoring || true
  fi
}

quick() {
  must 'build release' build release
  part 'quick tests' run_ctest build/release -LE '^long$' || true
}

long() {
  must 'build release' build release
  part 'long tests' run_ctest build/release -L '^long$' || true
}

faults() { check 'a sample of planted faults' tests/mutation/run.py --sample 5; }

quickstart() { check quickstart deploy/quickstart.sh --seeds 1; }

readonly every_part=(quick lint long builds sanitizers faults quickstart)
chosen=()
for argument; do
  case $argument in
    --all) chosen=("${every_part[@]}") ;;
    quick | lint | long | builds | sanitizers | faults | quickstart) chosen+=("$argument") ;;
    -h | --help)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      printf 'test: %s is no option and no part; see --help\n' "$argument" >&2
      exit 2
      ;;
  esac
done

trap finish EXIT
trap 'exit 130' INT TERM
if [[ $(id -u) -eq 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMPI_MCA_mpi_yield_when_idle=1

[[ ${#chosen[@]} -gt 0 ]] || chosen=(quick)
groups=(build test)
[[ " ${chosen[*]} " != *' lint '* ]] || groups+=(lint)
must install deploy/install.sh "${groups[@]}"
for name in "${chosen[@]}"; do "$name"; done
