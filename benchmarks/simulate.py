"""How fast data are simulated, and whether that is fast enough.

    python benchmarks/simulate.py

The requirement: 100,000 series of the flashing ratchet over [0, 2.5], observed at 50 times each, in under 10 s on two
cores, compilation included. The first call in a process compiles; the second is the work alone. JAX's persistent cache
is switched off, so that compilation is always measured.
"""

import os
import platform
import sys
import time
from collections.abc import Callable

os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)

from neuralmjp.systems import FlashingRatchet, Simulation, lotka_volterra

LIMIT = 10.0  # seconds
RATCHETS, POPULATIONS, LENGTH = 100_000, 5000, 50


def seconds(simulate: Callable[[], Simulation]) -> float:
    start = time.perf_counter()
    simulate()
    return time.perf_counter() - start


def measure(name: str, n_series: int, simulate: Callable[[int], Simulation]) -> float:
    """Print one line; return the seconds of the first call."""
    first = seconds(lambda: simulate(0))
    again = seconds(lambda: simulate(1))
    print(
        f"{name:<18}{n_series:>8} series x {LENGTH}:{first:>7.2f} s in all, {max(first - again, 0):.2f} s of it to "
        f"compile; {again:.2f} s again, {n_series / again:,.0f} series/s"
    )
    return first


def main() -> int:
    cores, busy = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{platform.machine()}, {cores} cores, {busy:.1f} processes running beside this one")
    ratchet, populations = FlashingRatchet(), lotka_volterra()
    taken = measure("flashing ratchet", RATCHETS, lambda seed: ratchet.simulate(RATCHETS, LENGTH, seed=seed))
    measure("Lotka-Volterra", POPULATIONS, lambda seed: populations.simulate(POPULATIONS, LENGTH, seed=seed))
    if taken > LIMIT:
        print(f"too slow: the flashing ratchet took {taken:.1f} s, the limit is {LIMIT:g} s", file=sys.stderr)
    return int(taken > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
