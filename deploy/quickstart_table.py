#!/usr/bin/python3
"""The result of deploy/quickstart.sh: a table (Markdown, also in runs/quickstart.md), what it says, a
few translations, and whether every cell came out as it should: exit 0, else 5 naming the cells.

Reads RUN/result.json (validation) and RUN/evaluation.json (test) of runs/quickstart-TOPOLOGY-seedN.
"""
import argparse
import json
import math
import pathlib
import sys

TITLES = {"post-ln": "Post-LN", "pre-ln": "Pre-LN", "residual": "ResiDual"}
EXPECTED_FAILURES = ("blind", "plateau")


class Cell:
    def __init__(self, runs, topology, seed):
        self.topology, self.seed = topology, seed
        self.run = runs / f"quickstart-{topology}-seed{seed}"
        self.result = json.loads((self.run / "result.json").read_text())
        self.test = json.loads((self.run / "evaluation.json").read_text())
        self.loss = number(self.result.get("validation_loss"))
        self.gain = number(self.result.get("source_gain"))
        self.bleu = number(self.test["bleu"])
        self.status, self.reason = self.result["status"], self.result["reason"]

    def name(self):
        return f"{TITLES[self.topology]}, seed {self.seed}"

    def status_text(self):
        if self.status != "failed":
            return self.status
        return f"failed ({self.reason.split(':')[0]}), step {self.result['step']}"

    def faults(self, bleu_floor, gain_floor):
        """What is not as expected; written so that NaN is a fault."""
        if self.topology == "post-ln":
            if self.status != "failed" or not self.reason.startswith(EXPECTED_FAILURES):
                yield f"status is {self.status_text()}, expected failed: blind or plateau"
            return
        if self.status != "completed":
            yield f"status is {self.status_text()}, expected completed"
        if not self.gain >= gain_floor:
            yield f"source gain is {self.gain:.3f} nats, expected at least {gain_floor:g}"
        if not self.bleu >= bleu_floor:
            yield f"BLEU is {self.bleu:.2f}, expected at least {bleu_floor:g}"


def number(value):
    return math.nan if value is None else float(value)


def table(cells, sentences):
    head = ["topology", "seed", "validation loss", "perplexity", "source gain",
            f"BLEU ({sentences} test sentences)", "status"]
    rows = [[TITLES[c.topology], str(c.seed), f"{c.loss:.3f}", f"{math.exp(c.loss):.1f}",
             f"{c.gain:.3f}", f"{c.bleu:.2f}", c.status_text()] for c in cells]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    is_number = [False, True, True, True, True, True, False]

    def line(row):
        return "| " + " | ".join(text.rjust(w) if right else text.ljust(w)
                                 for text, w, right in zip(row, widths, is_number)) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if right else "-")
                          for w, right in zip(widths, is_number)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def comparison(cells):
    """Which of the two that learn is ahead."""
    loss, bleu = ({t: mean(getattr(c, figure) for c in cells if c.topology == t)
                   for t in ("pre-ln", "residual")} for figure in ("loss", "bleu"))
    figures = (f"mean validation loss {loss['pre-ln']:.3f} (Pre-LN) and {loss['residual']:.3f} "
               f"(ResiDual), mean BLEU {bleu['pre-ln']:.2f} and {bleu['residual']:.2f}")
    if any(map(math.isnan, [*loss.values(), *bleu.values()])):
        return f"Pre-LN and ResiDual cannot be compared: {figures}."
    by_loss = loss["residual"] - loss["pre-ln"]
    by_bleu = bleu["pre-ln"] - bleu["residual"]
    if by_loss > 0 and by_bleu > 0:
        return f"At this length Pre-LN is ahead of ResiDual: {figures}."
    if by_loss < 0 and by_bleu < 0:
        return f"At this length ResiDual is ahead of Pre-LN: {figures}."
    return f"At this length neither Pre-LN nor ResiDual is ahead in both figures: {figures}."


def summary(cells, sentences):
    lines = [table(cells, sentences), "",
             "Loss in nats per target token, without label smoothing. Source gain: what the loss rises by when",
             "the sources are exchanged between sentences; 0 means that the model does not read them.", "",
             comparison(cells)]
    failed = [c for c in cells if c.status == "failed"]
    if failed:
        lines += [""] + [f"{c.name()}: {c.reason}" for c in failed]
    return "\n".join(lines)


def samples(cells):
    first = [c for c in cells if c.seed == 1]
    width = max(map(len, TITLES.values())) + 2
    lines = []
    for i, sample in enumerate(first[0].test.get("samples", [])):
        lines += [f"{'source':<{width}}{sample['source']}",
                  f"{'reference':<{width}}{sample['reference']}"]
        lines += [f"{TITLES[c.topology]:<{width}}{c.test['samples'][i]['translation']}" for c in first]
        lines.append("")
    return "\n".join(lines).rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--sentences", type=int, required=True)
    parser.add_argument("--bleu-floor", type=float, required=True)
    parser.add_argument("--source-gain-floor", type=float, required=True)
    options = parser.parse_args()

    cells = [Cell(options.runs, topology, seed)
             for topology in TITLES for seed in range(1, options.seeds + 1)]
    text = summary(cells, options.sentences)
    (options.runs / "quickstart.md").write_text(text + "\n")
    print(f"\n{text}\n\nThe same test sentences, seed 1:\n\n{samples(cells)}\n")
    print(f"Runs: {options.runs}/quickstart-TOPOLOGY-seedN, with config.yaml, metrics.jsonl, "
          "layers.jsonl, events.jsonl,\n      result.json, evaluation.json, train.log, checkpoints/. "
          f"The table: {options.runs / 'quickstart.md'},\n"
          f"      the gradients of the decoder's layers: {options.runs / 'quickstart.svg'}")

    faults = [f"{cell.name()}: {fault}" for cell in cells
              for fault in cell.faults(options.bleu_floor, options.source_gain_floor)]
    if faults:
        print("\nNot as expected:\n  " + "\n  ".join(faults))
        return 5
    print("\nAs expected: Post-LN fails; Pre-LN and ResiDual learn to translate.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
