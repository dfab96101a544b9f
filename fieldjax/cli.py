"""The command line: `fieldjax demo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

PACKAGES = {"grid_generator": "icon-grid-generator", "h5netcdf": "h5netcdf", "tqdm": "tqdm"}
"""What the demo needs besides fieldjax: module and package."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; 0 if all went well, 1 if a check failed, 2 if it couldn't be run."""
    options = _parser().parse_args(arguments)
    try:
        return _demo(options)
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fieldjax", description="Field operators on icosahedral meshes, on JAX.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="run a wave on an ICON grid, check it, differentiate it",
        description="Generates an ICON grid, runs a linear shallow-water wave on it, checks it against theory, "
        "computes and verifies a gradient. Writes demo_grid.nc, demo.nc and demo.png.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--output", type=Path, default=Path(), metavar="DIR", help="where the files go")
    demo.add_argument("--level", type=_level, default=4, help="k of the grid R2Bk, from 1 on")
    demo.add_argument("--hours", type=_hours, default=12.0, help="of model time")
    demo.add_argument("--no-plot", dest="plot", action="store_false", help="don't draw demo.png")
    return parser


def _level(text: str) -> int:
    level = int(text)
    if level < 1:
        raise argparse.ArgumentTypeError(f"a grid coarser than R2B1 doesn't resolve the wave, got {level}")
    return level


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours < float("inf"):
        raise argparse.ArgumentTypeError(f"it takes a positive number of hours, got {text}")
    return hours


def _demo(options: argparse.Namespace) -> int:
    if missing := list(_missing(options.plot)):
        return _failed(
            f"`fieldjax demo` needs {', '.join(missing)}; install what it needs with\n\n"
            '    pip install "fieldjax[demo]"\n\nor, in a clone of fieldjax, pip install -e ".[demo]"'
        )
    import jax

    # Before anything is computed, and in this process only: the demo checks itself to more than 32 bits.
    jax.config.update("jax_enable_x64", True)
    from fieldjax.errors import FieldjaxError

    try:
        options.output.mkdir(parents=True, exist_ok=True)
        return _run(options)
    except (FieldjaxError, OSError) as error:
        return _failed(str(error))


def _run(options: argparse.Namespace) -> int:
    from fieldjax.demo import output, picture, report, run

    results = run.run(options.output, level=options.level, hours=options.hours)
    written = [options.output / "demo_grid.nc", options.output / "demo.nc"]
    output.write_netcdf(results, written[-1])
    if options.plot:
        written.append(options.output / "demo.png")
        picture.draw(results, written[-1])
    print(report.table(results))
    print(f"\nwrote {', '.join(map(str, written))}")
    failures = report.failures(results.checks)
    return _failed(failures, status=1) if failures else 0


def _missing(plot: bool) -> Iterator[str]:
    packages = PACKAGES | ({"matplotlib": "matplotlib"} if plot else {})
    return (package for module, package in packages.items() if find_spec(module) is None)


def _failed(message: str, status: int = 2) -> int:
    print(f"fieldjax: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
