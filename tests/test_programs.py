"""A process that compiles for hours does not run out of memory mappings."""

import jax
import jax.numpy as jnp
import numpy as np

from neuralmjp import ExactMJP, TimeSeries, programs


def recording(n):
    rng = np.random.default_rng(n)
    states = (np.arange(n) // 7) % 2
    return TimeSeries.from_arrays(np.arange(float(n)), 3.0 * states + rng.normal(size=n))


def test_programs_are_forgotten_when_there_are_too_many(tmp_path, monkeypatch):
    """Here the system allows hardly any mappings: what was compiled before a fit is compiled again after it."""
    compiled = []

    @jax.jit
    def traced(x):
        compiled.append(1)
        return x + 1

    traced(jnp.zeros(3))
    ExactMJP(2, emission="gaussian", restarts=1, intervals=False).fit(recording(80))
    traced(jnp.zeros(3))
    assert len(compiled) == 1
    (tmp_path / "limit").write_text("10\n")
    monkeypatch.setattr(programs, "LIMIT", tmp_path / "limit")
    ExactMJP(2, emission="gaussian", restarts=1, intervals=False).fit(recording(80))
    traced(jnp.zeros(3))
    assert len(compiled) == 2


def test_where_the_system_does_not_say(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "LIMIT", tmp_path / "nothing")
    assert not programs.crowded()


def test_programs_take_mappings(monkeypatch):
    """The reason for all of it: mappings grow with every program, and fall when programs are forgotten."""

    def count():
        with open(programs.MAPS, "rb") as maps:
            return sum(1 for _ in maps)

    before = count()
    kept = [jax.jit(lambda x, k=k: jnp.sin(x) * k + k) for k in range(40)]
    for one in kept:
        one(jnp.ones(2)).block_until_ready()
    more = count()
    assert more > before
    del kept, one
    jax.clear_caches()
    assert count() < more
