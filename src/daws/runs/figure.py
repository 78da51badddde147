"""The figures that `plot()` gives. The only file that imports matplotlib, which is an optional extra."""

from io import BytesIO

from matplotlib.figure import Figure

DPI = 130


class ShownFigure(Figure):
    """A figure that notebooks show when it is the last line of a cell, also without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()
