"""Statistical checks with a stated failure rate: a correct program fails one such check in `FAILURE` of all seeds."""

import numpy as np
from scipy.stats import chi2, chisquare, norm

FAILURE = 1e-4


def assert_counts_follow(counts, probabilities, failure=FAILURE):
    """Chi-square test of counts against exact probabilities; categories expected fewer than 5 times are pooled."""
    counts, probabilities = np.asarray(counts, float).ravel(), np.asarray(probabilities, float).ravel()
    expected = counts.sum() * probabilities / probabilities.sum()
    assert (counts[expected == 0] == 0).all(), "something impossible happened"
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        keep = expected > 0
        counts, expected = counts[keep], expected[keep]
    assert chisquare(counts, expected).pvalue > failure


def assert_mean(sample, expected, failure=FAILURE):
    """Two-sided z test of a sample mean against its exact value."""
    sample = np.asarray(sample, float)
    z = (sample.mean(0) - expected) / (sample.std(0, ddof=1) / np.sqrt(len(sample)))
    assert (2 * norm.sf(np.abs(z)) > failure / np.size(z)).all(), f"z scores {z}"


def assert_same_counts(first, second, failure=FAILURE):
    """Two-sample chi-square test: both count vectors come from one law."""
    first, second = np.asarray(first, float).ravel(), np.asarray(second, float).ravel()
    keep = first + second >= 10
    first, second = (np.append(x[keep], x[~keep].sum()) for x in (first, second))
    both = first + second > 0
    first, second = first[both], second[both]
    ratio = np.sqrt(second.sum() / first.sum())
    statistic = ((ratio * first - second / ratio) ** 2 / (first + second)).sum()
    assert chi2.sf(statistic, len(first) - 1) > failure
