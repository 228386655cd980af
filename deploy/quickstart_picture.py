#!/usr/bin/python3
"""The picture of deploy/quickstart.sh: the gradient norm of every decoder layer, one curve for each
topology, at the last step at which all three were measured. Writes SVG to standard output.

Reads layers.jsonl and result.json of runs/quickstart-TOPOLOGY-seed1.
"""
import argparse
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

TITLES = {"post-ln": "Post-LN", "pre-ln": "Pre-LN", "residual": "ResiDual"}

WIDTH, HEIGHT = 800, 400
LEFT, RIGHT, TOP, BOTTOM = 92, 776, 64, 344  # of the plot

# The background is opaque, so the picture is readable on any page; it follows the reader's scheme.
STYLE = """
  .page { fill: #ffffff } .text { fill: #1f2328 } .faint { stroke: #d1d9e0 }
  .post-ln { color: #c2410c } .pre-ln { color: #1d4ed8 } .residual { color: #15803d }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #e6edf3 } .faint { stroke: #30363d }
    .post-ln { color: #fb923c } .pre-ln { color: #60a5fa } .residual { color: #4ade80 }
  }
  text { font: 14px sans-serif } .title { font-size: 17px; font-weight: bold }
  .curve { fill: none; stroke: currentColor; stroke-width: 2.5 } .mark { fill: currentColor }
"""


def norms_by_step(run):
    """{step: gradient norms of the decoder's layers, all blocks of a layer together}."""
    steps = {}
    for line in (run / "layers.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "blocks" not in record:  # the marker of a resume
            continue
        squares = {}
        for block in record["blocks"]:
            if block["stack"] == "decoder":
                norm = block["gradient_norm"]
                squares[block["layer"]] = squares.get(block["layer"], 0) + norm * norm
        steps[record["step"]] = [math.sqrt(squares[layer]) for layer in sorted(squares)]
    return steps


def ending(run):
    result = json.loads((run / "result.json").read_text())
    if result["status"] == "failed":
        return f"failed at step {result['step']} ({result['reason'].split(':')[0]})"
    return f"{result['status']}, validation loss {result['validation_loss']:.2f}"


def mark(topology, x, y):
    """Each topology has a shape of its own, for those who cannot tell the colours apart."""
    if topology == "post-ln":
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    corners = {"pre-ln": [(-4, -4), (4, -4), (4, 4), (-4, 4)],
               "residual": [(0, -5.5), (5.5, 4), (-5.5, 4)]}[topology]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="mark" points="{points}"/>'


def text(x, y, words, anchor="start", kind="text", more=""):
    return (f'<text class="{kind}" x="{x}" y="{y:.1f}" text-anchor="{anchor}"{more}>'
            f"{escape(words)}</text>")


def picture(curves, endings, step):
    layers = len(next(iter(curves.values())))
    values = [norm for curve in curves.values() for norm in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x_of(layer):
        return LEFT + 20 + (RIGHT - LEFT - 40) * (layer - 1) / max(layers - 1, 1)

    def y_of(norm):
        return BOTTOM - (BOTTOM - TOP) * (math.log10(norm) - low) / (high - low)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'width="{WIDTH}" height="{HEIGHT}" role="img">',
             f"<title>Gradient norm by decoder layer at step {step}</title>",
             f"<style>{STYLE}</style>",
             f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
             text(LEFT, 28, f"Gradient that reaches each decoder layer, quickstart, step {step}",
                  kind="text title"),
             text(LEFT, 49, "12+12 layers, same data, schedule and seed; only the position of the "
                            "layer norms differs")]
    for power in range(low, high + 1):
        y = y_of(10.0 ** power)
        lines += [f'<line class="faint" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
                  f'<text class="text" x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">10<tspan '
                  f'dy="-5" font-size="10">{power}</tspan></text>']
    lines += [text(round(x_of(layer)), BOTTOM + 20, str(layer), "middle")
              for layer in range(1, layers + 1)]
    lines += [text((LEFT + RIGHT) / 2, BOTTOM + 43, "decoder layer (1 is the lowest)", "middle"),
              text(0, 0, "gradient norm (nats, log scale)", "middle",
                   more=f' transform="translate(26,{(TOP + BOTTOM) / 2}) rotate(-90)"')]
    for row, (topology, curve) in enumerate(curves.items()):
        points = [(x_of(i + 1), y_of(norm)) for i, norm in enumerate(curve)]
        x, y = RIGHT - 350, BOTTOM - 62 + 22 * row
        lines += [f'<g class="{topology}">',
                  '<polyline class="curve" points="'
                  + " ".join(f"{a:.1f},{b:.1f}" for a, b in points) + '"/>',
                  *(mark(topology, a, b) for a, b in points),
                  f'<line class="curve" x1="{x}" x2="{x + 30}" y1="{y}" y2="{y}"/>',
                  mark(topology, x + 15, y),
                  text(x + 40, y + 5, f"{TITLES[topology]}: {endings[topology]}"), "</g>"]
    return "\n".join(lines + ["</svg>"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    options = parser.parse_args()
    runs = {topology: options.runs / f"quickstart-{topology}-seed1" for topology in TITLES}
    norms = {topology: norms_by_step(run) for topology, run in runs.items()}
    steps = set.intersection(*(set(by_step) for by_step in norms.values()))
    if not steps:
        print("quickstart_picture: the runs have no step with layer statistics in common",
              file=sys.stderr)
        return 3
    step = max(steps)
    curves = {topology: by_step[step] for topology, by_step in norms.items()}
    print(picture(curves, {topology: ending(run) for topology, run in runs.items()}, step))
    return 0


if __name__ == "__main__":
    sys.exit(main())
