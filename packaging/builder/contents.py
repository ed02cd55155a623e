"""What the executable carries, and what it leaves out and why. Everything else in the builder is mechanism.

A name that a dependency needs and that stands in neither table stops the build, so nothing is carried or dropped
without a line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# Debian packages: path globs inside the package -> folder in the tree. `{triplet}` and `{loader}` are the target's.
LIBRARY = "lib"
STDLIB = "lib/python3.11"
DEBIAN: Mapping[str, Mapping[str, str]] = {
    "python3.11-minimal": {"usr/bin/python3.11": "bin"},
    "libpython3.11-minimal": {"usr/lib/python3.11/**": STDLIB},
    "libpython3.11-stdlib": {"usr/lib/python3.11/**": STDLIB},
    "libc6": {
        f"lib/{{triplet}}/{name}": LIBRARY
        for name in (
            "{loader}",
            "libc.so.6",
            "libm.so.6",
            "libdl.so.2",
            "libpthread.so.0",
            "librt.so.1",
            "libresolv.so.2",
            "libutil.so.1",
        )
    },
    "libssl3": {f"usr/lib/{{triplet}}/{name}": LIBRARY for name in ("libssl.so.3", "libcrypto.so.3")},
    "libexpat1": {"*/libexpat.so.1*": LIBRARY},
    "zlib1g": {"*/libz.so.1*": LIBRARY},
    "libffi8": {"*/libffi.so.8*": LIBRARY},
    "libuuid1": {"*/libuuid.so.1*": LIBRARY},
    "libgcc-s1": {"*/libgcc_s.so.1": LIBRARY},
    "libstdc++6": {"usr/lib/{triplet}/libstdc++.so.6*": LIBRARY},
    "gcc-12-base": {},  # only the licence of libgcc and libstdc++
}

# Parts of the standard library that nothing here imports (globs below lib/python3.11).
STDLIB_LEFT_OUT = (
    # Development, teaching, other platforms.
    "test/**",
    "idlelib/**",
    "tkinter/**",
    "turtle*",
    "lib2to3/**",
    "distutils/**",
    "ensurepip/**",
    "venv/**",
    "pydoc_data/**",
    "unittest/**",
    "doctest.*",
    "pdb.*",
    "bdb.*",
    "cgi*",
    "this.*",
    "antigravity.*",
    # Slow doubles of compiled modules.
    "_pydecimal.*",
    "_pyio.*",
    "__phello__*",
    "msilib/**",
    "EXTERNALLY-MANAGED",
    "LICENSE.txt",
    "sitecustomize.*",
    "config-3.11*/**",
    # Formats and protocols of other programs.
    "sqlite3/**",
    "dbm/**",
    "curses/**",
    "xmlrpc/**",
    "aifc.*",
    "sunau.*",
    "wave.*",
    "chunk.*",
    "sndhdr.*",
    "imghdr.*",
    "mailbox.*",
    "mailcap.*",
    "nntplib.*",
    "telnetlib.*",
    "ftplib.*",
    "imaplib.*",
    "poplib.*",
    "smtplib.*",
    "smtpd.*",
    "asyncore.*",
    "asynchat.*",
    "pickletools.*",
    "email/architecture.rst",
    # Encodings that no Kubernetes object or certificate is written in.
    "encodings/cp[1-9]*",
    "encodings/mac_*",
    "encodings/iso2022*",
    "encodings/iso8859_[2-9]*",
    "encodings/iso8859_1[0-9]*",
    "encodings/big5*",
    "encodings/euc_*",
    "encodings/gb*",
    "encodings/hz*",
    "encodings/johab*",
    "encodings/koi8*",
    "encodings/kz*",
    "encodings/ptcp*",
    "encodings/shift_*",
    "encodings/tis*",
    "encodings/hp_*",
    "encodings/palmos*",
    # Extension modules: of the parts above, of tests, and those that drag in Kerberos, Berkeley DB, ncurses, readline.
    "lib-dynload/_codecs_*",
    "lib-dynload/_multibytecodec*",
    "lib-dynload/_crypt.*",
    "lib-dynload/_curses*",
    "lib-dynload/_dbm*",
    "lib-dynload/_sqlite3*",
    "lib-dynload/_test*",
    "lib-dynload/_ctypes_test*",
    "lib-dynload/_xx*",
    "lib-dynload/_lsprof*",
    "lib-dynload/audioop*",
    "lib-dynload/nis*",
    "lib-dynload/ossaudiodev*",
    "lib-dynload/readline*",
    "lib-dynload/xxlimited*",
    "lib-dynload/_bz2*",
    "lib-dynload/_lzma*",
)


@dataclass(frozen=True)
class Trim:
    """Globs of a distribution's files that are left out."""

    drop: tuple[str, ...] = ()


# Dropped from every distribution: what only a compiler, a type checker or a test runner reads.
ALWAYS_DROPPED = (
    "*.dist-info/**",
    "**/*.pyi",
    "**/py.typed",
    "**/*.pyx",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.c",
    "**/*.h",
    "**/tests/**",
    "**/test/**",
    "**/*.md",
    "**/*.rst",
    "**/*.proto",
)

CARRIED: Mapping[str, Trim] = {
    "annotated-types": Trim(),
    "attrs": Trim(),
    "certifi": Trim(),
    "cffi": Trim(("cffi/**",)),  # cryptography needs the compiled backend alone
    "charset-normalizer": Trim(("charset_normalizer/cli/**", "*.so")),
    "click": Trim(),
    "cryptography": Trim(),
    "durationpy": Trim(),
    "grpcio": Trim(("grpc/_cython/_credentials/**", "grpc/beta/**")),
    "grpcio-health-checking": Trim(),
    "grpcio-reflection": Trim(),
    "idna": Trim(),
    "importlib-metadata": Trim(),
    "jsonschema": Trim(("jsonschema/benchmarks/**", "jsonschema/cli.py")),
    "jsonschema-specifications": Trim(),
    # Only the kubeconfig loader is used (decision D27); models and API classes are loaded lazily by the package.
    "kubernetes": Trim(
        (
            "kubernetes/aio/**",
            "kubernetes/client/api/**",
            "kubernetes/client/models/[!_]*",
            "kubernetes/docs/**",
            "kubernetes/e2e_test/**",
        )
    ),
    "lazy-importer": Trim(),
    "oauthlib": Trim(),
    "prometheus-client": Trim(("prometheus_client/twisted/**", "prometheus_client/bridge/**")),
    "protobuf": Trim(),
    "pydantic": Trim(("pydantic/v1/**", "pydantic/mypy.py")),
    "pydantic-core": Trim(),
    "pygal": Trim(),
    "python-dateutil": Trim(("dateutil/zoneinfo/**",)),
    "pyyaml": Trim(),
    "referencing": Trim(),
    "requests": Trim(),
    "requests-oauthlib": Trim(),
    "rich": Trim(),
    "rpds-py": Trim(),
    "structlog": Trim(),
    "typing-extensions": Trim(),
    "typing-inspection": Trim(),
    "urllib3": Trim(("urllib3/contrib/emscripten/**",)),
    "websocket-client": Trim(),
    "zipp": Trim(),
}

LEFT_OUT: Mapping[str, str] = {
    "aiohttp": "of the kubernetes package's asynchronous client, which is not carried",
    "aiohttp-retry": "as aiohttp",
    "aiohappyeyeballs": "as aiohttp",
    "aiosignal": "as aiohttp",
    "frozenlist": "as aiohttp",
    "multidict": "as aiohttp",
    "propcache": "as aiohttp",
    "yarl": "as aiohttp",
    "markdown-it-py": "rich reads Markdown with it, and nothing here is Markdown",
    "mdurl": "as markdown-it-py",
    "pygments": "rich colours source code with it, and shows none here",
    "pycparser": "cffi's compiler of C declarations",
    "setuptools": "installs packages",
    "tzdata": "every time here is UTC",
}
