"""Every choice of a training run, typed, with two presets per posterior."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from ..errors import InputError

PosteriorName = Literal["tilted", "paper"]
EncoderName = Literal["ode-rnn", "gru", "state-space"]
Preset = Literal["paper", "quick"]


@dataclass(frozen=True)
class Config:
    """How a neural engine is built and trained. Times are normalised: the longest series lasts 1.

    Attributes:
        posterior: "tilted" (default of the library) or "paper" (free rates from one summary of the series).
        encoder: "ode-rnn" (the paper's), "gru" or "state-space".
        width: size of the encoder's summary.
        dynamics: hidden layers of the differential equation between observations (ode-rnn).
        runge_kutta: order, 2 or 4, of its steps; the paper does not say which.
        initial_hidden, rates_hidden: hidden layers of the paper's posterior.
        embedded: Mercer embedding of time in the paper's posterior.
        masked: the paper's posterior makes only the jumps that the prior allows.
        horizon: end of normalised time for the paper's posterior.
        solver, tolerance: "linear" steps on the shared grid, or the adaptive "dormand-prince".
        substeps, order: pieces per gap for the linear solver, and the order (2 or 4) of each step.
        quadrature: Gauss-Legendre points for the path divergence; 0 gathers it along the grid, as joint updates need.
        forbidden_rate: stands for a rate of zero in the paper's divergence, per horizon: its free posterior makes
            jumps that the prior forbids, and the divergence would be infinite.
        prior: "explicit" numbers or the paper's "generator" network.
        noise_sd: of the generator's inputs.
        two_step: the paper's updates: encoder and emission without divergence, then the prior on a fixed posterior.
        reconstruction: "expectation" over states, "gumbel" samples at temperature 1, or "straight-through".
        dropout: outside the dynamics.
        steer: the encoder's steps end up to this many gaps early or late, in training.
        drop_last: leave out the last observation of each series, whose gap is not known, as the paper does.
        batch: series per step.
        window: longer series are cut into windows of this many observations.
        steps: the most training steps.
        learning_rate: of the networks.
        model_learning_rate: of rates, emission and initial law.
        decay, decay_epochs: the learning rate is multiplied by `decay` every so many epochs; 0 epochs: when the
            objective no longer rises, and training stops when that no longer helps.
        prior_learning_rate: a constant one for the prior alone, if given.
        clip: largest norm of a gradient.
        kl_warmup: steps over which the divergence gains its weight.
        potentials: of counts in a mean field: a "polynomial" around a guess in closed form, or "free" for each count.
        piece_jumps: time is cut into pieces with so many expected jumps of a species in a mean field.
        sweeps: of coordinate ascent in a mean field, from what the networks propose.
        last_sweeps: the same once training has ended, if there are any and these are more.
        polish: the parameters of a mean field end at the top of the bound of all series, by a quasi-Newton method.
        curriculum: (n, steps, more): n observations per series for so many steps, then more of them until all are
            used after `more` further steps; None uses all from the start.
        fixed_spread: steps for which the emission's spread keeps its starting value.
        reseed: how often, in the first half of training, a state that nobody visits begins anew with the observations
            that are explained worst.
        round_steps: steps between looks at the objective, and between checkpoints.
        precision: "single" or "double".
        mesh: devices (cards; on the command line, without one, cores) that share every batch, which must be a multiple
            of it; 0 for as many of all there are as share it evenly.
        kernel: on one NVIDIA card, the recurrence of the encoder (ode-rnn, gru) is one kernel in place of thousands of
            small ones; elsewhere this changes nothing.
        hosts: of several machines that run the same command: "auto", or ADDRESS:PORT,NUMBER,INDEX; see `join_hosts`.
    """

    posterior: PosteriorName = "tilted"
    encoder: EncoderName = "gru"
    width: int = 64
    dynamics: tuple[int, ...] = (256, 256)
    runge_kutta: Literal[2, 4] = 2
    initial_hidden: tuple[int, ...] = (128, 128)
    rates_hidden: tuple[int, ...] = (256, 256, 128)
    embedded: bool = True
    masked: bool = False
    horizon: float = 1.1
    solver: Literal["linear", "dormand-prince"] = "linear"
    tolerance: float = 1e-3
    substeps: int = 1
    order: Literal[2, 4] = 2
    quadrature: int = 0
    forbidden_rate: float = 1e-2
    prior: Literal["explicit", "generator"] = "explicit"
    noise_sd: float = 0.1
    two_step: bool = False
    reconstruction: Literal["expectation", "gumbel", "straight-through"] = "expectation"
    dropout: float = 0.0
    steer: float = 0.0
    drop_last: bool = False
    batch: int = 64
    window: int = 200
    steps: int = 6000
    learning_rate: float = 3e-3
    model_learning_rate: float = 3e-2
    prior_learning_rate: float | None = None
    decay: float = 0.3
    decay_epochs: int = 0
    clip: float = 10.0
    kl_warmup: int = 0
    potentials: Literal["polynomial", "free"] = "polynomial"
    piece_jumps: float = 0.3
    sweeps: int = 1
    last_sweeps: int = 2
    polish: bool = True
    curriculum: tuple[int, int, int] | None = None
    fixed_spread: int = 0
    reseed: int = 3
    round_steps: int = 100
    precision: Literal["single", "double"] = "single"
    mesh: int = 1
    kernel: bool = False  # until it has been timed on a card: it was compiled for one, and tested by interpreting it
    hosts: str = ""

    def __post_init__(self):
        for name, kind in Config.__annotations__.items():
            allowed = get_args(kind)
            value = getattr(self, name)
            if allowed and all(isinstance(a, str) for a in allowed) and value not in allowed:
                raise InputError(f"{name} is one of {', '.join(allowed)}; got {value!r}")
        for name in ("order", "runge_kutta"):
            if getattr(self, name) not in (2, 4):
                raise InputError(f"{name} is 2 or 4, got {getattr(self, name)}")
        for name in ("width", "substeps", "batch", "steps", "round_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in (
            "learning_rate",
            "model_learning_rate",
            "clip",
            "tolerance",
            "forbidden_rate",
            "horizon",
            "piece_jumps",
        ):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, got {getattr(self, name)}")
        if self.curriculum is not None:
            few, *spans = self.curriculum
            if any(type(n) is not int for n in self.curriculum) or few < 1 or min(spans) < 0:
                raise InputError(f"a curriculum is three whole numbers, the first at least 1; got {self.curriculum}")
        if self.mesh < 0:
            raise InputError(f"mesh is a number of devices, or 0 for all; got {self.mesh}")
        if self.kernel:
            self._check_kernel()
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout lies between 0 and 1, got {self.dropout}")
        if self.posterior == "paper" and self.horizon < 1:
            raise InputError(f"the horizon must not end before the longest series does, at 1; got {self.horizon}")
        if self.posterior == "paper" and (self.two_step or self.solver == "dormand-prince") and self.quadrature < 2:
            raise InputError("two-step updates and the dormand-prince solver need quadrature: set it to 200")
        if self.posterior == "paper" and not self.two_step and self.quadrature > 0:
            raise InputError(
                "joint updates would learn to jump between the points of the quadrature, and the bound would be none: "
                "set quadrature to 0, which gathers the divergence along the grid, or two_step to true"
            )

    def _check_kernel(self) -> None:
        """Whether a card's products have these sizes."""
        if self.encoder == "state-space" or self.precision == "double" or self.mesh != 1:
            raise InputError("kernel is for the encoders ode-rnn and gru, in single precision, on one device")
        sizes = (self.width, *(self.dynamics if self.encoder == "ode-rnn" else ()))
        for size in sizes:
            if not 16 <= size <= 256 or size & (size - 1):
                raise InputError(f"kernel needs widths of 16, 32, 64, 128 or 256, got {size}")

    def changed(self, **changes: Any) -> "Config":
        """The same with some choices changed."""
        unknown = set(changes) - set(Config.__annotations__)
        if unknown:
            raise InputError(f"a training configuration has no {sorted(unknown)[0]!r}")
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def same_run(self) -> dict[str, Any]:
        """What must be the same for a run to go on: not the machines it runs on, nor how far it may go."""
        return {name: value for name, value in asdict(self).items() if name not in ("mesh", "kernel", "hosts", "steps")}


def preset(name: Preset, posterior: PosteriorName) -> Config:
    """The paper's sizes, or ones that are quick on a laptop."""
    if name not in get_args(Preset):
        raise InputError(f"a preset is paper or quick, got {name!r}")
    if posterior not in get_args(PosteriorName):
        raise InputError(f"a posterior is tilted or paper, got {posterior!r}")
    if posterior == "tilted":
        return Config() if name == "quick" else Config(encoder="ode-rnn", width=256, steer=1.0, dropout=0.2)
    as_published = Config(
        posterior="paper",
        encoder="ode-rnn",
        width=256,
        quadrature=200,
        prior="generator",
        two_step=True,
        reconstruction="gumbel",
        dropout=0.2,
        steer=1.0,
        drop_last=True,
        learning_rate=1e-3,
        model_learning_rate=1e-3,
        decay=0.8,
        decay_epochs=50,
        clip=1.0,
        reseed=0,
        steps=12_000,  # its rates rise for as long as one trains; here they pass the published ones
        round_steps=500,
    )
    if name == "paper":
        return as_published
    return as_published.changed(
        width=64,
        dynamics=(64, 64),
        initial_hidden=(64,),
        rates_hidden=(64, 64),
        quadrature=64,
        steps=3000,
        round_steps=250,
    )
