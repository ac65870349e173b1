"""The package itself: quick help, the order of its layers, one version, short modules, nothing dangerous."""

import ast
import re
import subprocess
import sys
import time
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

import pytest

import neuralmjp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "neuralmjp"
MODULES = sorted(PACKAGE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LONGEST = 400
INSTALLED = metadata.packages_distributions()

# What each layer may import of the package; a layer above all others is not listed.
LAYERS = {
    "errors": set(),
    "units": {"errors"},
    "arguments": {"errors"},
    "_version": set(),
    "whole_files": set(),
    "digests": {"timeseries"},
    "ensembles": {"errors", "io", "_version", "ensembles"},
    "programs": set(),
    "npz_files": {"errors"},
    "shapes": set(),
    "mjp": {"errors", "mjp"},
    "dates": {"errors", "units"},
    "naming": {"errors"},
    "checks": {"errors", "units", "dates", "timeseries"},  # the class it checks, for the type alone
    "preprocess": {"errors", "timeseries"},
    "events": {"dates", "timeseries"},
    "batches": {"errors", "timeseries"},
    "timeseries": {"errors", "units", "dates", "checks", "batches", "io", "timeseries"},  # io only inside functions
    "store": {"timeseries"},
    "io": {
        "errors",
        "units",
        "dates",
        "checks",
        "npz_files",
        "timeseries",
        "store",
        "preprocess",
        "io",
    },  # the last: to decimate
    "systems": {"errors", "mjp", "timeseries", "emissions", "systems"},  # emissions: how counts are read
    "plots": {"errors", "mjp", "timeseries", "plots"},
    "encoders": {"errors", "encoders"},
    "objective": set(),
    "priors": {"errors", "mjp", "systems", "encoders", "priors"},  # encoders: for the generator network alone
    "emissions": {"errors", "units", "mjp", "timeseries", "emissions"},
    "posteriors": {"errors", "mjp", "systems", "emissions", "encoders", "objective", "posteriors"},
}
ENSEMBLE = {"ensembles", "digests"}
MODEL = {"errors", "checks", "mjp", "timeseries", "priors", "emissions"}
LAYERS |= {
    # fitted: what a bootstrap fits again; systems: networks
    "exact": MODEL | ENSEMBLE | {"exact", "fitted", "systems"},
    "fitted": MODEL | {"naming", "events", "exact", "fitted_files", "systems"},  # systems: what comes of a seed
    "fitted_files": MODEL | {"exact", "fitted", "_version", "npz_files", "shapes", "whole_files"},
    "fitted_network": MODEL | {"systems", "exact", "fitted_network_files"},
    "fitted_network_files": MODEL | {"systems", "fitted_files", "fitted_network", "shapes"},
    "training": MODEL
    | {"systems", "exact", "encoders", "posteriors", "objective", "npz_files", "shapes", "whole_files", "training"},
    "baselines": MODEL | {"systems", "exact", "baselines"},  # exact: the simplex of PCCA+
    "estimators": MODEL | {"systems", "exact", "baselines", "training", "fitted", "fitted_network", "estimators"},
}
LAYERS["training"] |= {"digests", "store"}
LAYERS["estimators"] |= {"programs", "ensembles", "store"}
LAYERS["validation"] = LAYERS["estimators"] - {"training", "baselines"} | {"preprocess", "validation"} | ENSEMBLE
LAYERS["experiments"] = LAYERS["estimators"] - {"exact"} | {"objective", "plots", "io", "preprocess", "validation"}
LAYERS["experiments"] |= {"experiments"}
LAYERS["comparison"] = LAYERS["estimators"] - {"exact"} | {"fitted_files", "io", "preprocess", "comparison"} | ENSEMBLE
LAYERS["report"] = MODEL | {"_version", "fitted", "fitted_files", "io", "plots", "training", "report"}
LAYERS["report"] |= {"events", "exact", "fitted_network", "fitted_network_files"}
LAYERS["contrasts"] = MODEL | {"fitted", "fitted_network", "report"}
GROUND = {"errors", "units", "arguments"}  # who may complain may also say units and check arguments
LAYERS |= {name: allowed | GROUND for name, allowed in LAYERS.items() if "errors" in allowed and name not in GROUND}
NEURAL = ("encoders", "posteriors", "training", "objective", "priors.generator")


def name_of(path: Path) -> tuple[str, ...]:
    """`mjp/paths.py` -> ("mjp", "paths")."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def imports(path: Path, inside_functions: bool = True) -> set[str]:
    """Full names of the modules that a file imports, less those for type checkers alone."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(node)
        for part in ast.walk(tree)
        if (isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING")
        or (isinstance(part, ast.FunctionDef) and not inside_functions)
        for node in ast.walk(part)
    }
    here = ("neuralmjp", *name_of(path)[:-1])
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from .. import systems` names a module, `from ..errors import InputError` does not.
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "neuralmjp" else {module}
    return found


def identity(path: Path) -> str:
    return "/".join(name_of(path))


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_help_is_instant():
    """Best of three, because others may be using the machine."""

    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "neuralmjp", "--help"], capture_output=True, check=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 1.0


HELP = "from neuralmjp import cli\ntry:\n    cli.app(['--help'])\nexcept SystemExit:\n    pass"
DATA = "import neuralmjp.timeseries, neuralmjp.io.csv, neuralmjp.io.parquet, neuralmjp.io.npz"


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import neuralmjp", "jax numpy scipy pandas pyarrow matplotlib"),
        ("import neuralmjp.comparison, neuralmjp.validation, neuralmjp.ensembles", "dask distributed"),
        ("import neuralmjp.systems", "jax numpy scipy"),
        (
            "from neuralmjp import cli\ntry:\n    cli.app(['--help'])\nexcept SystemExit: pass",
            "jax numpy scipy matplotlib dask distributed",
        ),
        (
            "import neuralmjp.timeseries, neuralmjp.io.csv, neuralmjp.io.parquet, neuralmjp.io.npz",
            "jax equinox diffrax",
        ),
        ("import neuralmjp.commands.describe", "jax equinox diffrax matplotlib"),
    ],
    ids=["package", "ensembles", "systems", "help", "data", "describe"],
)
def test_slow_libraries_wait_until_they_are_needed(code, unwanted):
    loaded = set(run_python(f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')").split())
    assert not loaded & set(unwanted.split())


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_order_of_layers(path):
    layer = name_of(path)[0]
    if layer in LAYERS:
        used = {name.split(".")[1] for name in imports(path) if name.startswith("neuralmjp.")}
        assert used <= LAYERS[layer]


NOT_NEURAL = [path for path in MODULES if name_of(path)[0] in ("exact", "baselines", "priors")]


@pytest.mark.parametrize("path", NOT_NEURAL, ids=identity)
def test_the_exact_engine_needs_nothing_neural(path):
    """Nor do baselines and the rate models that it shares: only the generator knows a network, and they not it."""
    if identity(path) != "priors/generator":
        unwanted = tuple(f"neuralmjp.{name}" for name in NEURAL)
        assert not [name for name in imports(path) if name.startswith(unwanted) or name.endswith(".generator")]


def test_imports_are_understood():
    """The witness of the test above: both ways to write an import are seen."""
    assert "neuralmjp.mjp" in imports(PACKAGE / "systems" / "system.py")
    assert "neuralmjp.systems" in imports(PACKAGE / "commands" / "simulate.py")
    assert "neuralmjp.errors" in imports(PACKAGE / "io" / "files.py")
    assert "neuralmjp.io.arrays" in imports(PACKAGE / "timeseries.py")
    assert "neuralmjp.encoders.mlp" in imports(PACKAGE / "priors" / "generator.py")


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p)[0] in ("timeseries", "io")], ids=identity)
def test_data_need_no_jax(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"jax", "equinox", "diffrax", "optax"}


def test_imports_are_declared():
    """An installation without extras can import every module; inside functions an extra may be asked for."""
    required = distributions_named(PROJECT["dependencies"])
    extras = {name for lines in PROJECT["optional-dependencies"].values() for name in distributions_named(lines)}
    for path in MODULES:
        for module in third_party(imports(path, inside_functions=False)):
            assert distributions_of(module) & required, f"{path.name} imports {module}"
        for module in third_party(imports(path)):
            assert distributions_of(module) & (required | extras), f"{path.name} imports {module}"


def third_party(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names} - {"neuralmjp", *sys.stdlib_module_names}


def distributions_named(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", line)[0].lower() for line in requirements}


def distributions_of(module: str) -> set[str]:
    return {name.lower() for name in INSTALLED.get(module, [module])}


def test_one_version():
    assert "version" in PROJECT["dynamic"]
    assert neuralmjp.__version__ == metadata.version("neuralmjp")
    assert (PACKAGE / "_version.py").read_text() == f'__version__ = "{neuralmjp.__version__}"\n'


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_modules_are_short_and_say_what_they_are(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST
    assert path.name == "_version.py" or ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_nothing_runs_what_a_file_brings_along(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"pickle", "dill", "cloudpickle", "joblib", "marshal"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            assert not (isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec", "compile"))
            for keyword in node.keywords:
                assert keyword.arg != "allow_pickle" or ast.unparse(keyword.value) == "False"


@pytest.mark.parametrize("package", ["neuralmjp", "neuralmjp.mjp", "neuralmjp.systems", "neuralmjp.plots"])
def test_public_names_stay_what_they_are(package):
    """A module of the same name, once imported, must not take a function's place."""
    for path in MODULES:
        if path.name != "__main__.py":
            import_module(".".join(["neuralmjp", *name_of(path)]).removesuffix(".__init__"))
    module = import_module(package)
    for name in module.__all__:
        is_package = (Path(module.__file__).parent / name / "__init__.py").exists()
        meant = is_package or name in getattr(module, "_SUBPACKAGES", ())
        assert isinstance(getattr(module, name), ModuleType) == meant, name
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018
