"""`neuralmjp fit --prior NETWORK`: rate constants of a reaction network with intervals."""

from pathlib import Path
from typing import Any

from ..errors import InputError
from ..estimators import NetworkMJP
from ..fitted_network_files import summary
from ..systems import ReactionNetwork
from ..timeseries import TimeSeries
from ..training.lock import locked
from .network_tables import show
from .options import CountOptions
from .runs import write_run
from .show import console, progress_display
from .train import fit_neural
from .training_options import TrainingOptions


def run(
    data: TimeSeries,
    network: ReactionNetwork,
    *,
    path: Path,
    columns: dict[str, Any],
    engine: str,
    training: TrainingOptions,
    counts: CountOptions,
    initial: str,
    restarts: int,
    seed: int,
    out: Path | None,
    json_file: Path | None,
) -> None:
    estimator = NetworkMJP(
        network,
        noise=counts.noise,  # type: ignore[arg-type]
        noise_scale=counts.noise_scale,
        seen=counts.columns,
        initial=initial,
        restarts=restarts,
        seed=seed,
        **training.choices(),
    )
    screen, why = console(), ""
    if engine == "auto":
        engine, reason = estimator.choose(data)
        why = f", chosen because {reason}"
    estimator.set_params(engine=engine)
    if engine != "neural" and training.given:
        raise InputError(
            f"{', '.join(training.given)}: only for the neural engine, but the engine is {engine}{why}; "
            "add --engine neural, or leave this out"
        )
    if engine == "meanfield" and restarts > 1:
        raise InputError("the meanfield engine has a single start: leave --restarts out")
    with locked(out):
        if engine == "neural":
            fitted = fit_neural(estimator, data, out, training.resume, why)
        else:
            screen.print(f"engine: {engine}{why}", soft_wrap=True)
            with progress_display() as progress:
                fitted = estimator.fit(data, progress)
        try:
            show(fitted, path)
        finally:  # kept, even if nobody listens any more
            write_run(fitted, summary(fitted), columns, out, json_file, data=path)
