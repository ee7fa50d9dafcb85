"""What each module of the package imports, for types only and within functions, too; read once."""

import count_source

MODULES = count_source.modules()
ARROWS = count_source.imports(MODULES)
