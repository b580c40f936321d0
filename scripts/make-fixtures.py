#!/usr/bin/env python3
"""Fixtures: runs real TensorFlow/Keras and PyTorch once and writes their numbers to tests/fixtures.

Run by hand, never by the tests:

    python3 -m venv venv && venv/bin/pip install -r scripts/requirements-fixtures.txt
    venv/bin/python scripts/make-fixtures.py [--documents DIR] [documents|keras|torch|sdpa|training ...]

`--documents` names the folder of the articles whose two layers are run (default: shared/documents beside the checkout).
Start reading in fixtures/encode.py (the file format); each group has its own module there.
"""

import argparse
import importlib
import os
import pathlib
import sys

# One thread and no fused rewrites: the same machine gives the same file.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = {
    "documents": "document_layers",
    "keras": "keras_layers",
    "torch": "torch_layers",
    "sdpa": "torch_attention",
    "training": "torch_training",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=pathlib.Path, default=CHECKOUT.parent / "shared" / "documents")
    parser.add_argument("--out", type=pathlib.Path, default=CHECKOUT / "tests" / "fixtures")
    parser.add_argument("groups", nargs="*", help=f"default: all of {', '.join(GROUPS)}")
    options = parser.parse_args()
    unknown = sorted(set(options.groups) - set(GROUPS))
    if unknown:
        parser.error(f"unknown group {', '.join(unknown)}; there are {', '.join(GROUPS)}")

    sys.dont_write_bytecode = True  # leaves nothing beside the sources
    sys.path.insert(0, str(CHECKOUT / "scripts"))
    from fixtures import encode

    options.out.mkdir(parents=True, exist_ok=True)
    for group in options.groups or GROUPS:
        module = importlib.import_module(f"fixtures.{GROUPS[group]}")
        path = options.out / f"{group}.json"
        cases = module.make_cases(options)
        size = encode.write(path, module.ABOUT, module.versions(), cases)
        print(f"{path.name}: {len(cases)} cases, {size} bytes")


if __name__ == "__main__":
    main()
