"""Packs a tree: tar in a fixed order, with nothing of this machine or moment in it, compressed by zstd.

The payload is two zstd frames, one a layer, which a reader sees as one archive: the base layer takes a minute to
compress and changes with the locks only, the plugin's takes a moment.
"""

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import zstandard

# The file system rounds each file up to its block; this is what `du` shows and a quota counts.
BLOCK = 4096
# Two tar blocks of zeros end an archive; the layers are joined before it.
END_OF_ARCHIVE = bytes(1024)
# 8 MiB: the launcher holds a window in memory while it unpacks, inside the controller's memory limit, and refuses more
# than 16 MiB (zstdWindow in tree.go). A window over the whole tree would save 2 % of the file.
WINDOW_LOG = 23
LEVEL_RELEASE = 19


@dataclass(frozen=True)
class Layer:
    """A packed tree, and the bytes of each file in it."""

    packed: bytes
    files: dict[str, int]
    size_on_disk: int


def pack(tree: Path, *, level: int, last: bool) -> Layer:
    """Pack everything below a folder; the last layer ends the archive."""
    paths = sorted(tree.rglob("*"), key=lambda path: (not path.is_dir(), path.suffix, path.relative_to(tree).parts))
    plain = io.BytesIO()
    files = {}
    size = 0
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in paths:
            entry = tarfile.TarInfo(str(path.relative_to(tree)))
            entry.mode = path.stat().st_mode & 0o777
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
                size += BLOCK
            else:
                content = path.read_bytes()
                entry.size = files[entry.name] = len(content)
                archive.addfile(entry, io.BytesIO(content))
                size += -(-len(content) // BLOCK) * BLOCK
        end = archive.offset
    body = plain.getvalue()[:end] + (END_OF_ARCHIVE if last else b"")
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, window_log=WINDOW_LOG, write_checksum=True, write_content_size=True
    )
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(body)
    return Layer(packed, files, size)


def identity(layers: list[Layer]) -> str:
    """Write what the launcher knows without unpacking: the tree's name, its bytes on disk."""
    digest = hashlib.sha256(b"".join(layer.packed for layer in layers)).hexdigest()
    return f"{digest[:24]} {sum(layer.size_on_disk for layer in layers)}\n"


def listing(layers: list[Layer]) -> str:
    """Write what the launcher compares a tree with at each start: a line `BYTES PATH` for each file."""
    return "".join(f"{size} {name}\n" for layer in layers for name, size in layer.files.items())
