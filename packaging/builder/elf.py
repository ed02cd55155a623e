"""ELF files: what they need, what they are called, and what of them a loader never reads."""

from io import BytesIO
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

# Fields of the ELF64 header that point to the section table: e_shoff, then e_shentsize, e_shnum, e_shstrndx.
_SECTION_OFFSET = slice(40, 48)
_SECTION_NUMBERS = slice(58, 64)


def is_elf(path: Path) -> bool:
    """Whether the file starts as an ELF file."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def dynamic_tags(path: Path, tag: str) -> list[str]:
    """Values of a textual dynamic tag: DT_NEEDED, DT_SONAME, DT_RUNPATH, DT_RPATH."""
    with path.open("rb") as file:
        try:
            dynamic = [part for part in ELFFile(file).iter_segments() if isinstance(part, DynamicSegment)]
        except ELFError as error:
            raise ValueError(f"{path} is not a readable ELF file: {error}") from error
        attribute = {"DT_NEEDED": "needed", "DT_SONAME": "soname", "DT_RUNPATH": "runpath", "DT_RPATH": "rpath"}[tag]
        return [getattr(entry, attribute) for part in dynamic for entry in part.iter_tags(tag)]


def keep_segments(content: bytes) -> bytes:
    """Cut everything behind the last segment: symbols, debugging data and the section table, as `strip` would.

    A loader reads segments only. Unlike `strip` this needs no binutils of the target's architecture.
    """
    segments = list(ELFFile(BytesIO(content)).iter_segments())
    end = max(segment["p_offset"] + segment["p_filesz"] for segment in segments)
    kept = bytearray(content[:end])
    kept[_SECTION_OFFSET] = bytes(8)
    kept[_SECTION_NUMBERS] = bytes(6)
    return bytes(kept)
