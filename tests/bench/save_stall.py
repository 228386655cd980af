#!/usr/bin/python3
"""What a save costs the training: runs with a save every 20 steps, alternated with runs without.

    tests/bench/save_stall.py FATHOM CONFIG [--pairs 5] [--steps 100] [key=value ...]

For each save, the steps from its snapshot to its commit are compared with as many median steps of the
pair's run without saves; what they took longer, and what the loop waited itself, is the stall. Prints
one line for each pair and the medians: the stall as a share of the time between saves, the loop's own
wait in milliseconds, and how much slower the step beside the snapshot was.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

EVERY = 20


def train(fathom, config, directory, steps, every, overrides):
    words = [fathom, "train", config, f"run.directory={directory}", f"train.max_steps={steps}",
             f"checkpoint.every_steps={every}", "checkpoint.keep_last=1", "checkpoint.keep_best=0",
             "train.validate_every=0", "monitoring.listen=off", "monitoring.layer_statistics_every=0",
             *overrides]
    subprocess.run(words, check=True, capture_output=True)
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").open(encoding="utf-8")]
    events = [json.loads(line) for line in (directory / "events.jsonl").open(encoding="utf-8")]
    seconds = {line["step"]: line["timing"]["step_seconds"] for line in lines}
    return seconds, [event for event in events if event["event"] == "saved"]


def compare(base, seconds, saves, steps):
    """(stall share, wait in s, overlapped step over a median one) of each save but the last, for which the
    end of the run waits, and the first, which touches its memory."""
    median = statistics.median(list(base.values())[EVERY:])
    found = []
    for save in saves:
        first = save["step"] + 1
        if save["step"] <= EVERY or first + EVERY > steps + 1:
            continue
        last = first  # the steps that the commit may have slowed
        spent = 0.0
        while last < first + EVERY and spent < save["seconds"] + seconds[first]:
            spent += seconds[last]
            last += 1
        extra = spent - (last - first) * median + save["wait_seconds"]
        found.append((extra / (EVERY * median), save["wait_seconds"], seconds[first] / median))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fathom")
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.steps < 3 * EVERY:
        parser.error(f"--steps: got {arguments.steps}, at least {3 * EVERY} are needed: the first save and "
                     "the last do not count")
    everything = []
    for pair in range(arguments.pairs):
        with tempfile.TemporaryDirectory(prefix="save-stall-") as name:
            directory = pathlib.Path(name)
            base, _ = train(arguments.fathom, arguments.config, directory / "off", arguments.steps, 0,
                            arguments.overrides)
            seconds, saves = train(arguments.fathom, arguments.config, directory / "on",
                                   arguments.steps, EVERY, arguments.overrides)
            found = compare(base, seconds, saves, arguments.steps)
            everything += found
            stall, wait, slower = (statistics.median(column) for column in zip(*found))
            print(f"pair {pair + 1}: median step {statistics.median(base.values()):.3f} s, stall "
                  f"{100 * stall:.2f} %, own wait {1000 * wait:.1f} ms, step beside the snapshot "
                  f"x{slower:.3f}", flush=True)
    stall, wait, slower = (statistics.median(column) for column in zip(*everything))
    print(f"medians of {len(everything)} saves: stall {100 * stall:.2f} %, own wait "
          f"{1000 * wait:.1f} ms, step beside the snapshot x{slower:.3f}")


if __name__ == "__main__":
    main()
