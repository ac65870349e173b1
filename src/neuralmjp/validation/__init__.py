"""Is the fitted model true to the data, and how many states are there?

chapman_kolmogorov  the rates, carried on for several lags, against transitions seen in the data
implied_timescales  slow timescales against thinning; `plateau`, `thin_to_plateau`
predictive          dwell times, autocorrelation and density against simulated data
residuals           each observation in the law that the past led to expect
panel               prevalence, and a test of Pearson's kind, for states seen as labels
coverage            forecasts against what came; accuracy: how far off they are
select              how many states
"""

from .accuracy import Accuracy, accuracy
from .chapman_kolmogorov import ChapmanKolmogorov, chapman_kolmogorov
from .coverage import Coverage, coverage
from .follow_up import Prevalence, prevalence
from .implied_timescales import ImpliedTimescales, implied_timescales, plateau, thin_to_plateau
from .panel import Pearson, pearson
from .predictive import Predictive, predictive
from .residuals import Residuals, residuals
from .select import Candidate, Selection, select
from .verdict import Band, Verdict

__all__ = [
    "Accuracy",
    "Band",
    "Candidate",
    "ChapmanKolmogorov",
    "Coverage",
    "ImpliedTimescales",
    "Pearson",
    "Predictive",
    "Prevalence",
    "Residuals",
    "Selection",
    "Verdict",
    "accuracy",
    "chapman_kolmogorov",
    "coverage",
    "implied_timescales",
    "pearson",
    "plateau",
    "predictive",
    "prevalence",
    "residuals",
    "select",
    "thin_to_plateau",
]
