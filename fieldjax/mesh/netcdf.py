"""Reading and writing netCDF files whole, with errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldjax.errors import ArgumentError

if TYPE_CHECKING:
    import xarray

Path = str | os.PathLike[str]

# How a file starts says what reads it: HDF5 (netCDF-4), and the classic formats.
_ENGINES = {b"\x89HDF": "h5netcdf", b"CDF\x01": "scipy", b"CDF\x02": "scipy"}
# What h5py writes as strings of any length.
_TEXT = np.dtype("O", metadata={"vlen": str})
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
    """Writes a netCDF-4 file that `read` gives back unchanged.

    Not by `Dataset.to_netcdf`, which adds fill values and drops attributes of bounds.

    Raises:
        ArgumentError: what writes it isn't installed, or netCDF has no type for a variable.
    """
    unfit = {str(name): v.dtype for name, v in dataset.variables.items() if v.dtype.kind not in "iufSUO"}
    if unfit:
        names = ", ".join(f"{name} ({dtype})" for name, dtype in unfit.items())
        raise ArgumentError(f"{path} can't hold {names}", hints=["netCDF has numbers and text only: convert"])
    try:
        from h5netcdf import File

        with File(path, "w") as file:
            file.dimensions = {str(dim): size for dim, size in dataset.sizes.items()}
            file.attrs.update(dataset.attrs)
            for name, variable in dataset.variables.items():
                _write_variable(file, str(name), variable)
    except ImportError as error:
        raise _not_installed("h5netcdf", error) from error


def _write_variable(file: Any, name: str, variable: xarray.Variable) -> None:
    values = variable.values.astype(object) if variable.dtype.kind == "U" else variable.values
    attrs = dict(variable.attrs)
    fill = attrs.pop("_FillValue", None)
    dtype = _TEXT if values.dtype == object else values.dtype
    stored = file.create_variable(name, tuple(map(str, variable.dims)), dtype, fillvalue=fill)
    stored[...] = values
    stored.attrs.update(attrs)


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
        raise ArgumentError(f"{path} is netCDF CDF-5, which can't be read", hints=[f"nccopy -k nc4 {path} mesh.nc"])
    if start not in _ENGINES:
        raise ArgumentError(f"{path} is no netCDF file", notes=[f"it starts with {start!r}"])
    return _ENGINES[start]


def _not_installed(engine: str, error: ImportError) -> ArgumentError:
    return ArgumentError(f"netCDF files of this kind need {engine}", notes=[str(error)], hints=[_INSTALL])


def _better_reader(dataset: xarray.Dataset, what: str) -> Iterable[str]:
    looks = {
        "ICON": "edge_of_cell" in dataset.variables,
        "MPAS": "nVertLevels" in dataset.sizes or "nCells" in dataset.sizes,
        "UGRID": any(variable.attrs.get("cf_role") == "mesh_topology" for variable in dataset.variables.values()),
    }
    return [f"it looks like a file for open_{name.lower()}" for name, like in looks.items() if like and name != what]
