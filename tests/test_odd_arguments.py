"""Arguments of the wrong kind end in one line; in a process without the type checker of the tests, as users run it."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json
import numpy as np, pandas as pd
import neuralmjp as nm
from neuralmjp import ExactMJP, InputError, NetworkMJP, NeuralMJP, Panel, TimeSeries, systems, validation

steps = np.arange(40.0)
labels = TimeSeries.from_arrays(steps, (steps // 5) % 2)
signal = TimeSeries.from_arrays(steps, (steps // 5) % 2 + 0.1 * np.sin(7 * steps))
frame, predators = labels.to_frame(), systems.lotka_volterra()
births = systems.parse_network("0 -> X @ birth = 2\\nX -> 0 @ death = 0.2\\nbox X 30\\nstart X 3..12\\nduration 20")
counts = births.simulate(2, 10, seed=0).data
fitted = ExactMJP(2).fit(labels)
network = NetworkMJP(births, intervals=False).fit(counts)
said = {}
for line in CASES:
    try:
        said[line] = f"nothing: {eval(line)!r}"
    except InputError as error:
        said[line] = str(error)
    except Exception as error:
        said[line] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""

SEED, WORDS = "a seed is a whole number from 0, such as 1; got", "numbers are needed, as many in every row; got"
CASES = {
    "ExactMJP(2, seed='a').fit(labels)": f"{SEED} 'a'",
    "ExactMJP(2, seed=None).fit(labels)": f"{SEED} None",
    "ExactMJP(2, seed=1.5).fit(labels)": f"{SEED} 1.5",
    "ExactMJP(2, seed='a').bootstrap(labels, fitted, 40)": f"{SEED} 'a'",
    "NeuralMJP(2, seed='a').fit(labels)": f"{SEED} 'a'",
    "NetworkMJP(births, seed='a').fit(counts)": f"{SEED} 'a'",
    "predators.simulate(2, seed='a')": f"{SEED} 'a'",
    "fitted.simulate([0.0, 1.0], seed='a')": f"{SEED} 'a'",
    "fitted.predict(labels, [50.0], seed='a')": f"{SEED} 'a'",
    "network.simulate([0.0, 1.0], seed='a')": f"{SEED} 'a'",
    "network.predict(counts, [50.0], samples=2, seed='a')": f"{SEED} 'a'",
    "validation.residuals(fitted, labels, seed='a')": f"{SEED} 'a'",
    "validation.predictive(fitted, labels, seed='a')": f"{SEED} 'a'",
    "validation.chapman_kolmogorov(fitted, labels, seed='a')": f"{SEED} 'a'",
    "validation.select(labels, seed='a')": f"{SEED} 'a'",
    "counts.split((0.5, 0.5), seed='a')": f"{SEED} 'a'",
    "labels.batches(1, seed='a')": f"{SEED} 'a'",
    "ExactMJP(2).bootstrap(labels, fitted, 'many')": "at least 39 simulated data sets, better 200, a whole number; got",
    "validation.predictive(fitted, labels, simulations='a')": "ask for at least 50 simulations",
    "validation.residuals(network, counts)": "residuals is a check of a fit with hidden states (FittedMJP), got Fitt",
    "validation.prevalence(network, counts)": "prevalence or Pearson's test is a check of a fit with hidden states",
    "validation.pearson(network, counts)": "prevalence or Pearson's test is a check of a fit with hidden states",
    "validation.predictive(network, counts)": "reaction network there is validation.coverage, its forecasts against",
    "validation.chapman_kolmogorov(network, counts)": "chapman_kolmogorov is a check of a fit with hidden states",
    "validation.implied_timescales(counts, NetworkMJP(births))": "an estimator such as ExactMJP(2), got NetworkMJP",
    "nm.read([frame, frame])": "got DataFrame among them: of several data frames, pandas.concat makes one",
    "nm.read(5)": "a file is read by its name, several by a list of theirs; got int",
    "TimeSeries.from_frame([frame, frame])": "one pandas data frame is needed, got list: of several, pandas.concat",
    "Panel(exact_entry='death')": "exact_entry is a label, a number as in the data; got 'death'",
    "Panel(censored={99: 'a'})": "all of them numbers as in the data, such as {99: (1, 2)}; got {99: 'a'}",
    "Panel(censored={99: 1})": "got {99: 1}",
    "Panel(censored={99: ()})": "got {99: ()}",
    "Panel(censored=[1])": "such as {99: (1, 2)}; got [1]",
    "ExactMJP(2, panel='x').fit(labels)": "panel is a Panel, such as Panel(exact_entry=3); got 'x'",
    "ExactMJP(2, misread='x').fit(labels)": f"the table of misreadings: {WORDS} 'x'",
    "ExactMJP(2, mask=[[0, 1], [1]]).fit(labels)": f"a mask: {WORDS} [[0, 1], [1]]",
    "ExactMJP(2, initial=['a', 'b']).fit(labels)": f"the initial law: {WORDS} ['a', 'b']",
    "ExactMJP(2, rate_prior='x').fit(labels)": f"rate_prior: {WORDS} 'x'",
    "ExactMJP(2, rate_prior=3).fit(labels)": "rate_prior is a positive rate and a positive width, got 3",
    "ExactMJP(2, 'gaussian', levels='ab').fit(signal)": f"levels: {WORDS} 'ab'",
    "ExactMJP(2, 'gaussian', levels=3).fit(signal)": "levels are whole numbers from 0 without a gap",
    "ExactMJP(2, 'gaussian', hum=0.1, harmonics='x').fit(signal)": "harmonics are counted from 1, a whole number; got",
    "ExactMJP(2, 'gaussian', hum=[1]).fit(signal)": "hum is a frequency such as 50Hz, got [1]",
    "ExactMJP(2, 'gaussian', drift='x').fit(signal)": "drift is a number of half-waves from 0, a whole number; got",
    "ExactMJP(2, restarts='a').fit(labels)": "a fit has at least 1 start (restarts), a whole number; got 'a'",
    "NeuralMJP(2, restarts='a').fit(labels)": "training has at least 1 start (restarts), a whole number; got 'a'",
    "NetworkMJP(births, restarts='a').fit(counts)": "a fit has at least 1 start (restarts), a whole number; got 'a'",
    "ExactMJP(2, prior=3).fit(labels)": "no rate model 3; there are free, reversible, or a system, or a RateModel",
    "ExactMJP(3, prior=predators).fit(labels)": "lotka-volterra is a reaction network: it counts individuals",
    "NetworkMJP('lotka-volterra').network == predators": "nothing: True",
    "NetworkMJP(3)": "3 is no reaction network: give one, such as systems.lotka_volterra(), or its name",
    "NetworkMJP(births).set_params(network=systems.TwoMode())": "two-mode is no reaction network",
    "fitted.named('open', 2)": "2 states need 2 different names; got 'open', 2",
}


@pytest.fixture(scope="module")
def said():
    script = SCRIPT.replace("CASES", repr(list(CASES)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("line", CASES)
def test_one_line_says_what_came(said, line):
    assert CASES[line] in said[line]
    assert "\n" not in said[line]
    assert "Error" not in said[line].split(" ")[0]
