"""Alanine dipeptide: what is printed, in the paper and in those it compares with. All times in ns."""

from collections.abc import Sequence

from .tables import PUBLISHED, Line, Number

STATES = ("I", "II", "III", "IV", "V", "VI")
SCALES = ("first", "second", "third", "fourth", "fifth")
INTO = "into phi > 0"


def as_printed(method: str, columns: Sequence[str], values: Sequence[float], decimals: int) -> Line:
    return Line(method, {name: Number(x, None, decimals) for name, x in zip(columns, values, strict=True)})


def _row(state: int, values: Sequence[float], spreads: Sequence[float], decimals: int) -> Line:
    """From one state to the five others."""
    others = [name for k, name in enumerate(STATES) if k != state]
    numbers = {n: Number(x, sd, decimals) for n, x, sd in zip(others, values, spreads, strict=True)}
    return Line(PUBLISHED, numbers)


LAWS = (
    as_printed("VAMPnets", STATES, (0.30, 0.24, 0.20, 0.15, 0.11, 0.01), 2),
    as_printed(PUBLISHED, STATES, (0.30, 0.31, 0.23, 0.10, 0.05, 0.01), 2),
)
TIMES = (
    as_printed("VAMPnets", SCALES, (1.920, 0.065, 0.055, 0.009, 0.008), 3),
    as_printed("GMVAE", SCALES, (1.430, 0.065, 0.033, 0.003, 0.003), 3),
    as_printed("MSM", SCALES[:1], (1.490,), 3),
    as_printed(PUBLISHED, SCALES, (0.774, 0.069, 0.043, 0.009, 0.009), 3),
)
PASSAGE = (as_printed(PUBLISHED, (INTO,), (13.7,), 1),)

PASSAGES = (
    _row(0, (0.028, 0.290, 0.107, 13.727, 15.864), (0.002, 0.030, 0.006, 4.0, 4.0), 3),
    _row(1, (0.032, 0.287, 0.103, 13.728, 15.866), (0.003, 0.030, 0.006, 4.0, 4.0), 3),
    _row(2, (0.132, 0.134, 0.063, 13.729, 15.859), (0.010, 0.010, 0.005, 4.0, 4.0), 3),
    _row(3, (0.073, 0.074, 0.187, 13.706, 15.844), (0.008, 0.010, 0.020, 4.0, 4.0), 3),
    _row(4, (0.917, 0.913, 1.055, 0.932, 3.959), (0.220, 0.220, 0.240, 0.200, 1.0), 3),
    _row(5, (0.804, 0.800, 0.952, 0.824, 2.563), (0.210, 0.210, 0.210, 0.200, 1.0), 3),
)
RATES = (
    _row(0, (53.00, 0.19, 7.90, 0.06, 0.02), (4.00, 0.06, 0.90, 0.03, 0.01), 2),
    _row(1, (47.00, 0.05, 12.00, 0.04, 0.01), (3.00, 0.03, 0.90, 0.02, 0.01), 2),
    _row(2, (0.28, 0.13, 17.00, 0.02, 0.04), (0.09, 0.05, 1.40, 0.01, 0.02), 2),
    _row(3, (36.00, 26.90, 41.00, 0.30, 0.01), (3.00, 2.70, 4.00, 0.10, 0.01), 2),
    _row(4, (0.17, 0.20, 0.40, 0.20, 3.00), (0.06, 0.10, 0.20, 0.20, 1.00), 2),
    _row(5, (1.20, 1.80, 0.50, 0.70, 19.00), (0.60, 0.80, 0.20, 0.40, 7.50), 2),
)
# Timescales, slowest first, of 15 runs; the first five were picked by hand, and of the ten others only run 7 has
# states V and VI apart.
APART = "apart"
_RUNS = (
    (0.800, 0.084, 0.027, 0.011, 0.008),
    (1.000, 0.500, 0.055, 0.048, 0.021),
    (1.500, 0.068, 0.040, 0.014, 0.012),
    (0.410, 0.250, 0.071, 0.013, 0.009),
    (0.800, 0.069, 0.040, 0.009, 0.009),
    (0.700, 0.059, 0.010, 0.008, 0.006),
    (1.300, 0.080, 0.060, 0.012, 0.012),
    (0.800, 0.073, 0.013, 0.010, 0.008),
    (0.670, 0.064, 0.017, 0.015, 0.010),
    (0.500, 0.077, 0.010, 0.009, 0.005),
    (0.800, 0.053, 0.018, 0.011, 0.010),
    (0.800, 0.063, 0.011, 0.009, 0.007),
    (0.700, 0.060, 0.013, 0.008, 0.007),
    (0.610, 0.063, 0.011, 0.008, 0.007),
    (0.650, 0.070, 0.008, 0.006, 0.005),
)


def _run(k: int, scales: Sequence[float]) -> Line:
    apart = {APART: Number(float(k <= 5 or k == 7), None, 0)}
    return Line(f"{k}{', picked' if k <= 5 else ''}", as_printed("", SCALES, scales, 3).numbers | apart)


STABILITY = tuple(_run(k, scales) for k, scales in enumerate(_RUNS, start=1))
