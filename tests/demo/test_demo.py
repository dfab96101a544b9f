"""The main job on a small grid, from the command line; and its checks, which must be able to fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fieldjax as fj
from fieldjax import cli
from fieldjax.demo import checks, report
from fieldjax.demo.experiment import on_cells, prepare
from fieldjax.mesh import Cell, icosahedron

pytest.importorskip("grid_generator", reason="the demo extra isn't installed")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


def test_the_demo_runs_checks_itself_and_writes_what_it_says(output: Path, capsys: Any) -> None:
    assert cli.main(["demo", "--level", "2", "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    for words in ("1280 cells", "mass drift", "Taylor test, order", "time per step", "demo.nc", "demo.png"):
        assert words in printed
    assert (output / "demo.png").stat().st_size > 10_000


def test_its_result_opens_in_xugrid(output: Path) -> None:
    xugrid = pytest.importorskip("xugrid")
    if not (output / "demo.nc").exists():
        cli.main(["demo", "--level", "2", "--no-plot", "--output", str(output)])
    dataset = xugrid.open_dataset(output / "demo.nc", engine="h5netcdf")
    assert dataset.ugrid.grid.n_face == 1280
    assert all(np.isfinite(dataset[name]).all() for name in dataset.data_vars)


def test_a_failed_check_is_said_and_ends_with_one(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    wrong = checks.Check("mass drift, relative", 1.0, at_most=1e-12)
    monkeypatch.setattr(checks, "mass_drift", lambda *_: wrong)
    monkeypatch.setattr("fieldjax.demo.run.mass_drift", lambda *_: wrong)
    assert cli.main(["demo", "--level", "1", "--hours", "6", "--no-plot", "--output", str(tmp_path)]) == 1
    assert "mass drift" in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "tqdm" else object())
    assert cli.main(["demo"]) == 2
    assert 'pip install "fieldjax[demo]"' in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--level", "0"], ["--hours", "-1"], ["--hours", "inf"]])
def test_bad_options_are_refused(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit):
        cli.main(["demo", *arguments])
    assert "error" in capsys.readouterr().err


def test_a_bound_is_kept_or_not() -> None:
    assert checks.Check("x", 1.0).passed
    assert not checks.Check("x", 1.0, at_most=0.5).passed
    assert not checks.Check("x", 1.0, at_least=1.5).passed
    assert not checks.Check("x", math.nan).passed
    assert report.failures([checks.Check("x", 1.0, at_most=0.5)])


def test_a_wrong_speed_is_found() -> None:
    speed, radius, degree, interval = 200.0, 6.4e6, 4, 1800.0
    omega = speed * math.sqrt(degree * (degree + 1)) / radius
    right = [math.cos(omega * interval * n) for n in range(25)]
    assert checks.frequency_error(right, interval, degree, speed, radius).value < 1e-12
    assert not checks.frequency_error(right, interval, degree, 1.03 * speed, radius).passed


def test_a_wrong_adjoint_and_a_wrong_gradient_are_found() -> None:
    experiment = prepare(icosahedron(3), 12.0)
    start = experiment.wave()
    assert checks.dot_product(experiment.forecast, start).passed
    right = jax.vjp(experiment.forecast, start)[1]

    def wrong(y: Any) -> Any:
        back = right(y)[0]
        return type(back)(back.h * 1.0001, back.u)

    assert not checks.dot_product(experiment.forecast, start, adjoint=wrong).passed
    misfit = experiment.misfit(experiment.forecast(start).h)
    guess = on_cells(experiment.grid, np.zeros(experiment.grid.sizes[Cell]))
    _, gradient = misfit(guess)
    assert checks.taylor_order(lambda h: float(misfit(h)[0]), guess, gradient).passed
    bent = fj.as_field(gradient.domain, gradient.asnumpy() * 1.01)
    assert not checks.taylor_order(lambda h: float(misfit(h)[0]), guess, bent).passed
