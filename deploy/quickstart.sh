#!/usr/bin/env bash
# The main experiment: a 12+12-layer Transformer with three norm placements, trained by two MPI
# ranks on German-English text. Installs what is missing, builds, trains, prints a table and draws
# runs/quickstart.svg.
#
#   deploy/quickstart.sh [--seeds N] [--steps N] [--ranks N] [--anew]
#
#   --seeds N   train every topology with seeds 1..N (default 1)
#   --steps N   optimizer steps of a run (default: what configs/quickstart.yaml says)
#   --ranks N   MPI processes, 1 or 2: the config cuts a batch into two shards (default 2)
#   --anew      move the runs of an earlier quickstart aside and train again
#
# Without --anew it continues where it was stopped (Ctrl-C), and trains nothing twice. Exit codes: 0 the
# experiment came out as it should; 5 it did not, the cells are named; 75 stopped, run it again;
# others as in docs/running.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BLEU_FLOOR=5         # on the test sentences, for pre-ln and residual
readonly SOURCE_GAIN_FLOOR=0.5  # nats, for pre-ln and residual
readonly SENTENCES=200 SAMPLES=3
readonly TOPOLOGIES=(post-ln pre-ln residual)
readonly config=configs/quickstart.yaml
readonly fathom=build/release/bin/fathom

seeds=1 ranks=2 steps='' anew=no
trainer=''      # process id of mpirun while it runs
is_stopped=no   # a signal came

say() { printf '%s\n' "$*" >&2; }
die() {  # CODE TEXT
  local code=$1
  shift
  say "quickstart: $*"
  exit "$code"
}

parse_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --anew) anew=yes ;;
      --seeds | --steps | --ranks)
        [[ ${2:-} =~ ^[1-9][0-9]{0,8}$ ]] || die 2 "$1: got '${2:-}', expected a number from 1"
        printf -v "${1#--}" %s "$2"
        shift
        ;;
      -h | --help)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' deploy/quickstart.sh
        exit 0
        ;;
      *) die 2 "$1 is no option; see --help" ;;
    esac
    shift
  done
  [[ $ranks -le 2 ]] || die 2 "--ranks: got $ranks, expected 1 or 2: the config has two shards"
}

build() {
  deploy/install.sh build
  local tests=()
  [[ -e build/release/CMakeCache.txt ]] || tests=(-DFATHOM_TESTS=OFF)
  say 'building (build/release)'
  mkdir -p build
  {
    cmake --preset release "${tests[@]}" && cmake --build --preset release --parallel "$(nproc)" --target fathom
  } >build/quickstart.log 2>&1 || {
    tail -n 40 build/quickstart.log >&2
    die 1 'the build failed, see build/quickstart.log'
  }
}

# mpirun passes SIGUSR1 on to all ranks, SIGINT it does not; the ranks save and end with code 75.
on_signal() {
  [[ $is_stopped == yes || -z $trainer ]] || printf '\n%s\n' 'stopping: the ranks save and end' >&2
  is_stopped=yes
  [[ -z $trainer ]] || kill -USR1 "$trainer" 2>/dev/null || true
}

stop_if_asked() {
  [[ $is_stopped == no ]] || die 75 'stopped; run the same command again to go on'
}

move_aside() {
  local run earlier=()
  for run in runs/quickstart-*-seed*; do [[ ! -d $run ]] || earlier+=("$run"); done
  [[ ${#earlier[@]} -gt 0 ]] || return 0
  local place
  place=runs/earlier-quickstart-$(date +%Y%m%d-%H%M%S)
  mkdir -p "$place"
  mv -- "${earlier[@]}" "$place"
  say "moved ${#earlier[@]} earlier runs to $place"
}

# Sets `step` and `loss` from the last line of metrics.jsonl.
read_last_step() {  # RUN
  local last
  last=$(tail -n 1 "$1/metrics.jsonl" 2>/dev/null) || return 1
  [[ $last =~ \"step\":([0-9]+).*\"loss\":([0-9.]+) ]] || return 1
  step=${BASH_REMATCH[1]} loss=${BASH_REMATCH[2]}
}

draw_bar() {  # RUN FROM-STEP FROM-SECOND
  local step loss left='' bar
  read_last_step "$1" || return 0
  local full=$((30 * step / total_steps)) done_here=$((step - $2)) seconds=$((SECONDS - $3))
  [[ $full -le 30 ]] || full=30
  [[ $done_here -le 0 ]] || left="  $((seconds * (total_steps - step) / done_here)) s left"
  bar=$(printf '%*s' "$full" '' | tr ' ' '#')$(printf '%*s' $((30 - full)) '' | tr ' ' '-')
  printf '\r  [%s] %d/%d  loss %.3f%s\033[K' "$bar" "$step" "$total_steps" "$loss" "$left" >&2
}

# Shows what is new in the log. On a terminal a bar stands for the trainer's own progress lines.
show_log() {  # LOG FIRST-LINE
  local wanted='^[0-9]{2}:[0-9]{2}:[0-9]{2} |^fathom'
  [[ -t 2 ]] && printf '\r\033[K' >&2 || wanted+='|^quickstart-.* [0-9]+/[0-9]+ '
  { tail -n "+$2" "$1" | grep -E "$wanted" | sed 's/^/  /' >&2; } || true
}

# Trains one cell and says how it ended by its exit code; writes RUN/train.log.
train() {  # TOPOLOGY SEED
  local name=quickstart-$1-seed$2 code=0 shown=1 lines step=0 loss
  local run=runs/$name
  local log=$run/train.log
  mkdir -p "$run"
  touch "$log"
  shown=$(($(wc -l <"$log") + 1))
  read_last_step "$run" || true
  local first_step=$step first_second=$SECONDS
  [[ $step -le $total_steps ]] ||
    die 2 "$run has trained $step steps already, more than $total_steps; --anew starts again"
  say "$1, seed $2: $run"
  set -m # a process group of its own: the terminal's Ctrl-C reaches this script only
  mpirun -np "$ranks" --bind-to none --oversubscribe "$fathom" train "$config" \
    model.topology="$1" run.seed="$2" run.directory="$run" run.name="$name" \
    ${steps:+train.max_steps="$steps"} >>"$log" 2>&1 </dev/null &
  trainer=$!
  set +m
  [[ $is_stopped == no ]] || on_signal
  while kill -0 "$trainer" 2>/dev/null; do
    sleep 0.5 || true
    lines=$(wc -l <"$log")
    [[ $lines -lt $shown ]] || show_log "$log" "$shown"
    shown=$((lines + 1))
    [[ ! -t 2 || $is_stopped == yes ]] || draw_bar "$run" "$first_step" "$first_second"
  done
  wait "$trainer" || code=$?
  trainer=''
  show_log "$log" "$shown"
  [[ $code -ne 75 ]] || is_stopped=yes
  stop_if_asked
  case $code in
    0) return 0 ;;
    5)
      [[ $1 != post-ln ]] || say '  (at this depth that is what to expect of Post-LN)'
      return 0
      ;;
    2)
      ! grep -q 'the run was started with\|the checkpoint was made with' "$log" ||
        say "(runs of another configuration can be moved aside: deploy/quickstart.sh --anew)"
      ;;
    *) tail -n 20 "$log" >&2 ;;
  esac
  die "$code" "training of $1, seed $2 ended with code $code; all it said is in $log"
}

# The test figures of one cell in RUN/evaluation.json, made again only when the run has moved on.
evaluate() {  # TOPOLOGY SEED
  local run=runs/quickstart-$1-seed$2 step
  step=$(sed -n 's/.*"step":\([0-9]*\).*/\1/p' "$run/result.json")
  grep -qs "^  \"step\": $step,\$" "$run/evaluation.json" && return 0
  say "$1, seed $2: translating $SENTENCES test sentences"
  local code=0
  "$fathom" evaluate "$run" --split test --sentences "$SENTENCES" --samples "$SAMPLES" \
    >"$run/evaluation.tmp" || code=$?
  stop_if_asked
  [[ $code -eq 0 ]] || die "$code" "evaluation of $run ended with code $code"
  mv "$run/evaluation.tmp" "$run/evaluation.json"
}

main() {
  parse_arguments "$@"
  build
  if [[ $(id -u) -eq 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  export OMPI_MCA_mpi_yield_when_idle=1 # ranks may share cores with others
  trap on_signal INT TERM HUP
  [[ $anew == no ]] || move_aside

  local start=$SECONDS topology seed code=0
  total_steps=$("$fathom" config show "$config" ${steps:+train.max_steps="$steps"} |
    sed -n 's/^ *max_steps: *\([0-9]*\).*/\1/p')
  "$fathom" prepare "$config" ${steps:+train.max_steps="$steps"} >&2 || code=$?
  stop_if_asked
  [[ $code -eq 0 ]] || exit "$code"
  for ((seed = 1; seed <= seeds; ++seed)); do
    for topology in "${TOPOLOGIES[@]}"; do train "$topology" "$seed"; done
  done
  for ((seed = 1; seed <= seeds; ++seed)); do
    for topology in "${TOPOLOGIES[@]}"; do evaluate "$topology" "$seed"; done
  done

  /usr/bin/python3 deploy/quickstart_table.py --seeds "$seeds" --sentences "$SENTENCES" \
    --bleu-floor "$BLEU_FLOOR" --source-gain-floor "$SOURCE_GAIN_FLOOR" || code=$?
  /usr/bin/python3 deploy/quickstart_picture.py >runs/quickstart.svg
  printf '\nRun time of the experiment: %d min %02d s (build and installation not counted)\n' \
    $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60))
  return "$code"
}

main "$@"
