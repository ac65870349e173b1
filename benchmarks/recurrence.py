"""The recurrence of an encoder: one kernel of a graphics card against a scan of small programs.

    python benchmarks/recurrence.py

Milliseconds of value and gradient at the paper's width, and how far the two are apart. Without a card the kernel is
interpreted, in miniature: it is compared, and its time says nothing.
"""

import sys
import time
from functools import partial
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from harness import Benchmark, table
from neuralmjp.encoders import ODERNN, Encoder, GRUEncoder, Inputs, encoder, fused

CASES = {  # runs side by side, series, observations
    "one run, 64 series of 100": (1, 64, 100),
    "five runs, 64 series of 100": (5, 64, 100),
    "five runs, 10 series of 100": (5, 10, 100),
    "ten runs, 1 series of 67": (10, 1, 67),
}
MINIATURE = {"two runs, 3 series of 4": (2, 3, 4)}
KINDS = ("ode-rnn", "gru")
CLOSE = 3e-2  # of the largest slope: both round products to ten bits or so


def problem(kind: str, kernel: bool, runs: int, series: int, length: int, width: int) -> tuple[Encoder, Inputs]:
    """Encoders side by side, and what they read."""
    rng = np.random.default_rng(0)

    def one(key: jax.Array) -> Encoder:
        if kind == "ode-rnn":
            return ODERNN(3, width, key=key, hidden=(width, width), kernel=kernel)
        return GRUEncoder(3, width, key=key, kernel=kernel)

    features = rng.normal(size=(series, length, 3)).astype(np.float32)
    gaps = np.full((series, length), 1 / length, np.float32)
    inputs = Inputs(jnp.asarray(features), jnp.asarray(gaps), jnp.zeros(series), jnp.ones((series, length), bool))
    return jax.vmap(one)(jax.random.split(jax.random.key(0), runs)), inputs


def objective(one: Encoder, inputs: Inputs) -> jax.Array:
    found = one(inputs, key=None)
    return (found.whole**2).sum() + (found.before**2).mean()


def compiled(encoders: Encoder, inputs: Inputs) -> Any:
    """Value and gradient; where there is no card, the kernel is interpreted."""
    both = jax.jit(jax.vmap(jax.value_and_grad(objective), in_axes=(0, None)))
    if jax.default_backend() == "gpu":
        return both.lower(encoders, inputs).compile()
    interpreted = partial(fused.fused_scan, interpreted=True)
    with patch.object(encoder, "on_card", lambda _: True), patch.object(fused, "fused_scan", interpreted):
        return both.lower(encoders, inputs).compile()


def milliseconds(call: Any, *given: Any, n: int) -> float:
    """The middle of several calls, each waited for."""
    found = []
    for _ in range(n):
        began = time.perf_counter()
        jax.block_until_ready(call(*given))
        found.append(1e3 * (time.perf_counter() - began))
    return float(np.median(found))


def apart(one: Any, two: Any) -> float:
    """Largest difference of slopes, beside the largest slope of the same array."""
    return max(
        float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(np.abs(np.asarray(b)).max(), 1e-12))
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    )


def compare(bench: Benchmark) -> None:
    """Both ways, at the sizes of the paper's experiments."""
    on_card = jax.default_backend() == "gpu"
    rows = []
    for kind in KINDS:
        for name, sizes in (CASES if on_card else MINIATURE).items():
            width = 256 if on_card else 16
            given = {way: problem(kind, way == "kernel", *sizes, width) for way in ("kernel", "scan")}
            ways = {way: compiled(*one) for way, one in given.items()}
            found = {way: milliseconds(ways[way], *one, n=20 if on_card else 2) for way, one in given.items()}
            found["apart"] = apart(*(ways[way](*one) for way, one in given.items()))
            bench.results.setdefault(kind, {})[name] = found
            bench.write()
            rows.append(
                [f"{kind}, {name}", found["kernel"], found["scan"], found["scan"] / found["kernel"], found["apart"]]
            )
            bench.require(f"{kind}, {name}: both alike", found["apart"] < CLOSE)
            if on_card:
                bench.require(f"{kind}, {name}: the kernel is faster", found["kernel"] < found["scan"])
    table(
        "Value and gradient of an encoder, side by side",
        ["", "kernel (ms)", "scan (ms)", "scan / kernel", "apart"],
        rows,
    )


def main() -> int:
    bench = Benchmark("recurrence", __doc__.splitlines()[0])
    compare(bench)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
