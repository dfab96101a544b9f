"""Neighbour tables as JAX values: connectivities, meshes, offsets, and what an offset provider is."""

from fieldjax.connectivity.ambient import Ambient, ambient
from fieldjax.connectivity.cartesian import CartesianConnectivity
from fieldjax.connectivity.connectivity import Connectivity
from fieldjax.connectivity.construct import as_connectivity, connectivity_of
from fieldjax.connectivity.handle import Handle
from fieldjax.connectivity.host_table import HostTable
from fieldjax.connectivity.lifting import lifting, resolve
from fieldjax.connectivity.mesh import Mesh
from fieldjax.connectivity.offset import FieldOffset, SlotOffset
from fieldjax.connectivity.provider import Provider, as_provider
from fieldjax.connectivity.questions.protocol import TableFacts, TableQuestions
from fieldjax.connectivity.structure import Structure
from fieldjax.connectivity.traces import fenced, is_compiling, is_differentiating
from fieldjax.connectivity.transpose import Transposed
from fieldjax.connectivity.view import MeshView, Table, TableView, identity_of, is_table

__all__ = [
    "Ambient",
    "CartesianConnectivity",
    "Connectivity",
    "FieldOffset",
    "Handle",
    "HostTable",
    "Mesh",
    "MeshView",
    "Provider",
    "SlotOffset",
    "Structure",
    "Table",
    "TableFacts",
    "TableQuestions",
    "TableView",
    "Transposed",
    "ambient",
    "as_connectivity",
    "as_provider",
    "connectivity_of",
    "fenced",
    "identity_of",
    "is_compiling",
    "is_differentiating",
    "is_table",
    "lifting",
    "resolve",
]
