#!/usr/bin/env python3
"""Bench: measures PyTorch's training steps once, for tests/bench/stored/torch-training.json.

Run by hand on a quiet machine, as scripts/make-fixtures.py is (the same requirements):

    venv/bin/python scripts/measure-torch-training.py --machine 'AMD EPYC, 2 cores'

The models are those of tests/bench/training-models.json: torch.nn.Transformer, or a causal torch.nn.TransformerEncoder for a
decoder alone, post-norm, ReLU, no dropout, Adam; a step is forward, backward and update, as the bench's contenders do it.
"""

import argparse
import datetime
import json
import math
import pathlib
import resource
import statistics
import subprocess
import sys
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
MODELS = CHECKOUT / "tests" / "bench" / "training-models.json"
STORED = CHECKOUT / "tests" / "bench" / "stored" / "torch-training.json"
ROUNDS = 5
ROUND_SECONDS = 0.4


def model_of(config: dict):
    import torch
    from torch import nn

    width = config["embedDim"]
    options = dict(
        d_model=width, nhead=config["numHeads"], dim_feedforward=config["feedForwardDim"], dropout=0.0, batch_first=True
    )
    layers = config["decoderLayers"]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.both = config["kind"] == "encoder-decoder"
            if self.both:
                self.source = nn.Embedding(config["sourceVocabulary"], width)
                encoder_layer = nn.TransformerEncoderLayer(**options)
                self.encoder = nn.TransformerEncoder(encoder_layer, config["encoderLayers"], enable_nested_tensor=False)
                self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), layers)
            else:
                layer = nn.TransformerEncoderLayer(**options)
                self.decoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.target = nn.Embedding(config["targetVocabulary"], width)
            self.generator = nn.Linear(width, config["targetVocabulary"])
            places = torch.arange(config["maxLength"])[:, None]
            angles = places / 10000.0 ** (torch.arange(0, width, 2) / width)
            self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1))

        def embed(self, embedding, tokens):
            return embedding(tokens) * math.sqrt(width) + self.table[: tokens.shape[1]]

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            x = self.embed(self.target, target)
            if self.both:
                memory = self.encoder(self.embed(self.source, source))
                return self.generator(self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True))
            return self.generator(self.decoder(x, mask=mask, is_causal=True))

    return Model().train()


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(model: dict, threads: int) -> dict:
    """In a process of its own: the peak of memory is the process's."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config, batch = model["config"], model["batch"]

    def tokens(vocabulary, length):
        return torch.randint(vocabulary, (batch, length))

    target = tokens(config["targetVocabulary"], model["targetLength"])
    labels = tokens(config["targetVocabulary"], model["targetLength"])
    source = tokens(config["sourceVocabulary"], model["sourceLength"]) if model["sourceLength"] else None
    # What the libraries take before there is a model.
    torch.nn.Linear(8, 8)(torch.ones(8, 8)).sum().backward()
    before = peak_bytes()
    module = model_of(config)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()

    def step() -> float:
        optimizer.zero_grad()
        loss = loss_of(module(source, target).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(3):
        step()
    rounds = []
    for _ in range(ROUNDS):
        times = []
        start = time.perf_counter()
        while time.perf_counter() - start < ROUND_SECONDS or not times:
            begun = time.perf_counter()
            step()
            times.append(time.perf_counter() - begun)
        rounds.append(statistics.median(times))
    # The quickest round: whatever else the machine does is not PyTorch's fault.
    return {"milliseconds": round(min(rounds) * 1e3, 3), "peakBytes": peak_bytes() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="its name, as the bench is to show it")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # name and threads, of the process that measures
    options = parser.parse_args()
    models = json.loads(MODELS.read_text(encoding="utf-8"))
    if options.one:
        name, threads = options.one
        model = next(model for model in models if model["name"] == name)
        print(json.dumps(measure(model, int(threads))))
        return
    if not options.machine:
        parser.error("--machine is needed")
    import torch

    results = []
    for model in models:
        for threads in options.threads:
            command = [sys.executable, __file__, "--one", model["name"], str(threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            sizes = {key: model[key] for key in ("config", "batch", "sourceLength", "targetLength")}
            result = {"name": model["name"], "threads": threads, **json.loads(done.stdout), "sizes": sizes}
            print(result)
            results.append(result)
    stored = {
        "generated": "by scripts/measure-torch-training.py; not to be edited",
        "machine": options.machine,
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "about": "milliseconds of a step: the quickest of the rounds' medians; peakBytes: resident memory beyond the libraries'",
        "results": results,
    }
    STORED.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
