"""Reading and writing netCDF files whole, with errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fieldjax.errors import ArgumentError

if TYPE_CHECKING:
    import xarray

Path = str | os.PathLike[str]

# How a file starts says what reads it: HDF5 (netCDF-4), and the classic formats.
_ENGINES = {b"\x89HDF": "h5netcdf", b"CDF\x01": "scipy", b"CDF\x02": "scipy"}
_INSTALL = "pip install 'fieldjax[demo]'"


def read(path: Path) -> xarray.Dataset:
    """The file's variables as they are stored, nothing decoded, all in memory.

    Raises:
        FileNotFoundError: there is no such file.
        ArgumentError: it isn't netCDF, is truncated, or what reads it isn't installed.
    """
    import xarray

    engine = _engine(path)
    try:
        with xarray.open_dataset(path, engine=engine, decode_cf=False, cache=False) as dataset:
            return dataset.load()
    except ImportError as error:
        raise _not_installed(engine, error) from error
    except Exception as error:  # what a damaged file raises depends on where it is cut
        raise ArgumentError(
            f"{path} can't be read: it is truncated or damaged",
            notes=[f"{engine} says: {error}", f"its size is {os.path.getsize(path)} bytes"],
        ) from error


def write(dataset: xarray.Dataset, path: Path) -> None:
    """Writes a netCDF-4 file, no fill values added.

    Raises:
        ArgumentError: what writes it isn't installed.
    """
    encoding: dict[Any, Any] = {
        name: {} if "_FillValue" in variable.attrs else {"_FillValue": None}
        for name, variable in dataset.variables.items()
    }
    try:
        dataset.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    except ImportError as error:
        raise _not_installed("h5netcdf", error) from error


def require(dataset: xarray.Dataset, names: Iterable[str], path: Path, what: str) -> None:
    """Raises an `ArgumentError` that names the missing variables, and a reader that would fit better."""
    missing = [name for name in names if name not in dataset.variables]
    if missing:
        raise ArgumentError(
            f"{path} is no complete {what} file: no variable {', '.join(missing)}",
            notes=[f"it has {', '.join(map(str, dataset.variables)) or 'none'}"],
            hints=list(_better_reader(dataset, what)),
        )


def size(dataset: xarray.Dataset, name: str, path: Path) -> int:
    """The size of a dimension; an `ArgumentError` where there is none of that name."""
    if name not in dataset.sizes:
        raise ArgumentError(
            f"{path} has no dimension {name}",
            notes=[f"it has {', '.join(map(str, dataset.sizes)) or 'none'}"],
        )
    return dataset.sizes[name]


def _engine(path: Path) -> str:
    with open(path, "rb") as file:
        start = file.read(4)
    if start == b"CDF\x05":
        raise ArgumentError(
            f"{path} is netCDF CDF-5, which can't be read", hints=[f"nccopy -k nc4 {path} mesh.nc"]
        )
    if start not in _ENGINES:
        raise ArgumentError(f"{path} is no netCDF file", notes=[f"it starts with {start!r}"])
    return _ENGINES[start]


def _not_installed(engine: str, error: ImportError) -> ArgumentError:
    return ArgumentError(f"netCDF files of this kind need {engine}", notes=[str(error)], hints=[_INSTALL])


def _better_reader(dataset: xarray.Dataset, what: str) -> Iterable[str]:
    looks = {
        "ICON": "edge_of_cell" in dataset.variables,
        "MPAS": "nVertLevels" in dataset.sizes or "nCells" in dataset.sizes,
        "UGRID": any(
            variable.attrs.get("cf_role") == "mesh_topology" for variable in dataset.variables.values()
        ),
    }
    return [
        f"it looks like a file for open_{name.lower()}"
        for name, like in looks.items()
        if like and name != what
    ]
