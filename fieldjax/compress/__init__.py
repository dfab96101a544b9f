"""Regions: subgraphs of a recorded model as single operations, compiled on their own, shared and differentiable."""

from fieldjax.compress.compress import CompressedOperation, compress
from fieldjax.compress.compressed import Compressed, compressed

__all__ = ["Compressed", "CompressedOperation", "compress", "compressed"]
