"""Builds what is released: the one-file executable, the image, checksums, bill of materials, and the install manifests.

The executable is a static launcher (`packaging/launcher`) around a relocatable CPython tree. The same commit and the
same locks give the same bytes, on any machine: nothing here reads the clock, the host's Python or its libraries.
"""
