"""The package's version, for modules that would import themselves by way of the package."""

__version__ = "0.1.0"
