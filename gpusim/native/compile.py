"""The compilation itself: `python -m gpusim.native.compile FOLDER`, run from beside the package."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mypyc.build import mypycify
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

from gpusim.native import GROUP
from gpusim.native.modules import MODULES

#: the project's own checks are another matter: here only types count that the modules use, and numbers are numbers
_TYPES = """\
[mypy]
ignore_missing_imports = True
disable_error_code = var-annotated
[mypy-gpusim.public.*,gpusim.result.*,gpusim.scenario.*,gpusim.study.*,gpusim.report.*,gpusim.machine.*,gpusim.cli.*]
follow_imports = skip
[mypy-pandas.*,matplotlib.*,numpy.*,pydantic.*]
follow_imports = skip
"""


class _Build(build_ext):
    """Compiles the C files of the library side by side, and only those that have changed in FOLDER."""

    def build_extension(self, ext: Extension) -> None:
        compiler: Any = self.compiler
        options = {
            "output_dir": self.build_temp,
            "include_dirs": ext.include_dirs,
            "extra_postargs": ext.extra_compile_args,
            "depends": ext.depends,
        }
        headers = [Path(name).stat().st_mtime for name in ext.depends if name.endswith(".h")]

        def compiled(source: str) -> None:
            made = Path(compiler.object_filenames([source], output_dir=self.build_temp)[0])
            newest = max([Path(source).stat().st_mtime, *headers])
            if not made.exists() or made.stat().st_mtime < newest:
                compiler.compile([source], **options)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compiled, ext.sources))
        objects = compiler.object_filenames(ext.sources, output_dir=self.build_temp)
        place = self.get_ext_fullpath(ext.name)
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        compiler.link_shared_object(objects, place, build_temp=self.build_temp)


def compile_into(folder: Path) -> None:
    """Leave the twins in `folder/twins`."""
    sources = [f"{name.replace('.', '/')}.py" for name in MODULES]
    config = folder / "types.ini"
    config.write_text(_TYPES, encoding="utf-8")
    options = [f"--config-file={config}", f"--cache-dir={folder / 'types'}"]
    extensions = mypycify(
        options + sources,
        opt_level="2",
        debug_level="0",
        multi_file=True,
        target_dir=str(folder / "c"),
        group_name=GROUP,
    )
    for extension in extensions:
        extension.extra_compile_args.append("-Wno-error")  # another compiler's new warnings stop nobody
    command = _Build(Distribution({"name": "gpusim", "ext_modules": extensions}))
    command.build_lib = str(folder / "twins")
    command.build_temp = str(folder / "objects")
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]))
