"""The model again, from its formulas, in PyTorch f64 with autograd: padded batches and masks where
Fathom packs. Usage: torch_model.py DIR...; each DIR holds index.json and, per parameter, FILE.value
and FILE.grad as raw little-endian f64. Exit 1 naming what differs."""
import json
import math
import sys

import torch

EOS = 1
torch.set_num_threads(1)


class Model:
    def __init__(self, index, directory):
        self.c = index
        self.p = {}
        self.want = {}
        for entry in index["parameters"]:
            self.p[entry["name"]] = read(directory, entry, "value").requires_grad_()
            self.want[entry["name"]] = read(directory, entry, "grad")

    def linear(self, x, name):
        return x @ self.p[name + ".weight"].T + self.p[name + ".bias"]

    def norm(self, x, name, eps=1e-5):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + eps) * self.p[name + ".gain"] + self.p[name + ".bias"]

    def table(self, stack, role):
        own = f"{stack}.{role}.weight"
        if own in self.p:
            return self.p[own]
        if role == "output" and "decoder.embedding.weight" in self.p:
            return self.p["decoder.embedding.weight"]
        return self.p["embedding.weight"]

    def embed(self, tokens, stack):
        width = self.c["width"]
        half = width // 2
        frequency = torch.exp(-torch.arange(half, dtype=torch.float64) * math.log(10000) / (half - 1))
        angle = (torch.arange(tokens.shape[1], dtype=torch.float64) + 2)[:, None] * frequency
        positions = torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)
        return math.sqrt(width) * self.table(stack, "embedding")[tokens] + positions

    def heads(self, x):  # (B, T, C) -> (B, H, T, d)
        B, T, C = x.shape
        return x.view(B, T, self.c["heads"], C // self.c["heads"]).transpose(1, 2)

    def attend(self, q, k, v, visible):  # visible (B, Tq, Tk)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~visible[:, None], float("-inf"))
        y = torch.softmax(scores, -1) @ v
        return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)

    def sublayer(self, x, name, kind, visible, memory):
        if kind == "self_attention":
            q, k, v = self.linear(x, name + ".qkv").chunk(3, dim=-1)
            return self.linear(self.inner(self.attend(q, k, v, visible[kind]), name), name + ".out")
        if kind == "cross_attention":
            k, v = self.linear(memory, name + ".kv").chunk(2, dim=-1)
            q = self.linear(x, name + ".q")
            return self.linear(self.inner(self.attend(q, k, v, visible[kind]), name), name + ".out")
        h = self.linear(x, name + ".fc1")
        h = torch.relu(h) if self.c["activation"] == "relu" else h * 0.5 * (1 + torch.erf(h / math.sqrt(2)))
        return self.linear(self.inner(h, name), name + ".fc2")

    def inner(self, x, name):
        return self.norm(x, name + ".inner_norm") if self.c["topology"] == "sub-ln" else x

    def option(self, name, default):
        return (self.c["options"] or {}).get(name, default)

    def stack(self, x, stack, layers, kinds, visible, memory=None):
        blocks = [[f"{stack}.{layer}.{kind}" for kind in kinds] for layer in range(1, layers + 1)]

        def f(u, name):
            return self.sublayer(u, name, name.rsplit(".", 1)[1], visible, memory)

        return getattr(self, self.c["topology"].replace("-", "_"))(x, f, blocks, stack)

    # The topologies: x is the embedding, f(u, name) a block's body, `layers` the names of the blocks.

    def post_ln(self, x, f, layers, _):
        for name in sum(layers, []):
            x = self.norm(x + f(x, name), name + ".norm")
        return x

    def pre_ln(self, x, f, layers, stack):
        for name in sum(layers, []):
            x = x + f(self.norm(x, name + ".norm"), name)
        return self.norm(x, stack + ".final_norm")

    sub_ln = pre_ln  # but for inner()

    def residual(self, x, f, layers, stack):
        alpha, scale = float(self.option("alpha", 1)), float(self.option("scale", 1))
        dual = scale * x if self.option("dual_start", "embedding") == "embedding" else torch.zeros_like(x)
        for name in sum(layers, []):
            o = f(x, name)
            dual = dual + scale * o
            x = self.norm(x + o, name + ".norm")
        return alpha * x + self.norm(dual, stack + ".final_norm", 1e-7)

    def deepnorm(self, x, f, layers, stack):
        N, M = self.c["encoder_layers"], self.c["decoder_layers"]
        if N == 0:
            alpha = (2 * M) ** (1 / 4)
        else:
            alpha = 0.81 * (N ** 4 * M) ** (1 / 16) if stack == "encoder" else (3 * M) ** (1 / 4)
        for name in sum(layers, []):
            x = self.norm(alpha * x + f(x, name), name + ".norm")
        return x

    def admin(self, x, f, layers, _):
        for name in sum(layers, []):
            x = self.norm(self.p[name + ".stream_weight"] * x + f(x, name), name + ".norm")
        return x

    def branchnorm(self, x, f, layers, _):
        g = min(1.0, self.c["update"] / float(self.option("updates", 4000)))
        for name in sum(layers, []):
            x = self.norm(x + g * f(x, name), name + ".norm")
        return x

    def hyper_connections(self, x, f, layers, stack):
        n = int(self.option("streams", 2))
        H = torch.stack([x] * n)  # (n, B, T, C)
        for name in sum(layers, []):
            values = self.p[name + ".connections"]
            read, write = values[:n], values[n:].reshape(n, n + 1)  # write[i]: of stream i
            o = f(self.norm(torch.einsum("j,jbtc->btc", read, H), name + ".norm"), name)
            H = torch.einsum("ij,jbtc->ibtc", write[:, :n], H) + torch.einsum("i,btc->ibtc", write[:, n], o)
        return self.norm(H.sum(0), stack + ".final_norm")

    def denseformer(self, x, f, layers, stack):
        outputs = [x]
        for names in layers:
            for name in names:
                x = x + f(self.norm(x, name + ".norm"), name)
            outputs.append(x)
            x = torch.einsum("j,jbtc->btc", self.p[names[-1] + ".depth_weights"], torch.stack(outputs))
        return self.norm(x, stack + ".final_norm")

    def loss(self):
        targets = [t + [EOS] for t in self.c["target"]]
        inputs, real = pad([[EOS] + t for t in self.c["target"]])
        wanted, _ = pad(targets)
        T = inputs.shape[1]
        causal = torch.tril(torch.ones(T, T, dtype=torch.bool))
        visible = {"self_attention": causal[None] & real[:, None, :]}
        memory = None
        kinds = ["self_attention", "feed_forward"]
        if self.c["encoder_layers"]:
            source, source_real = pad([s + [EOS] for s in self.c["source"]])
            seen = {"self_attention": source_real[:, None, :].expand(-1, source.shape[1], -1)}
            memory = self.stack(self.embed(source, "encoder"), "encoder", self.c["encoder_layers"], kinds, seen)
            visible["cross_attention"] = source_real[:, None, :].expand(-1, T, -1)
            kinds = ["self_attention", "cross_attention", "feed_forward"]
        y = self.stack(self.embed(inputs, "decoder"), "decoder", self.c["decoder_layers"], kinds, visible, memory)
        logp = torch.log_softmax(y @ self.table("decoder", "output").T, -1)
        # fairseq 0.12: eps_i = eps / (V - 1); (1 - eps - eps_i) nll + eps_i * sum over v of -log p
        eps = self.c["smoothing"]
        eps_i = eps / (logp.shape[-1] - 1)
        nll = -logp.gather(-1, wanted[..., None])[..., 0]
        smooth = (1 - eps - eps_i) * nll + eps_i * -logp.sum(-1)
        return (smooth * real).sum() / real.sum()


def read(directory, entry, kind):
    with open(f"{directory}/{entry['file']}.{kind}", "rb") as f:
        values = torch.frombuffer(bytearray(f.read()), dtype=torch.float64)
    return values.reshape(entry["shape"]).clone()


def pad(sentences):
    T = max(len(s) for s in sentences)
    tokens = torch.tensor([s + [0] * (T - len(s)) for s in sentences])
    return tokens, torch.tensor([[t < len(s) for t in range(T)] for s in sentences])


def check(directory):
    with open(f"{directory}/index.json") as f:
        index = json.load(f)
    model = Model(index, directory)
    loss = model.loss()
    loss.backward()
    problems = []
    if not abs(loss.item() - index["loss"]) <= 1e-12 * abs(loss.item()):
        problems.append(f"loss: torch {loss.item()!r}, fathom {index['loss']!r}")
    grads = {name: p.grad for name, p in model.p.items()}
    for name in [n for n, g in grads.items() if g is None]:
        problems.append(f"{name}: the formulas do not use it")
        grads[name] = torch.zeros_like(model.p[name])
    whole = math.sqrt(sum(float((g ** 2).sum()) for g in grads.values()))
    for name, want in grads.items():
        off = float((model.want[name] - want).norm())
        if not off <= 1e-9 * float(want.norm()) + 1e-12 * whole:
            problems.append(f"{name}: gradient off by {off:.3e}, norm {float(want.norm()):.3e}, whole {whole:.3e}")
    for problem in problems:
        print(f"{directory.rsplit('/', 1)[-1]}: {problem}")
    return not problems


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: torch_model.py DIR...")
    results = [check(directory) for directory in sys.argv[1:]]
    sys.exit(0 if all(results) else 1)
