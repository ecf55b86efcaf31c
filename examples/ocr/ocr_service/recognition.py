"""Text from pictures, by Tesseract."""

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ocr_service.raster import Raster
from ocr_service.settings import Layout

# Builds of Tesseract with OpenMP take four threads a page, which fight for the cores with the other
# pages. The library looks at this once, when it is loaded.
os.environ.setdefault("OMP_THREAD_LIMIT", "1")

import tesserocr

_SEGMENTATION: dict[Layout, int] = {
    Layout.ROWS: tesserocr.PSM.SINGLE_COLUMN,
    Layout.COLUMNS: tesserocr.PSM.AUTO,
}


class Recognised(NamedTuple):
    text: str
    confidence: float
    """From 0 to 1, as Tesseract sees it."""


class Recognizer:
    """For one thread. Tesseract is loaded with the first page that needs it; while it reads, other
    threads go on."""

    def __init__(self, tessdata: Path, languages: Sequence[str], layout: Layout) -> None:
        self._tessdata = tessdata
        self._languages = "+".join(languages)
        self._segmentation = _SEGMENTATION[layout]
        self._loaded: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._loaded is not None:
            self._loaded.End()

    def read(self, raster: Raster) -> Recognised:
        api = self._api()
        api.SetImageBytes(raster.pixels, raster.width, raster.height, 1, raster.stride)
        api.SetSourceResolution(raster.dpi)
        api.Recognize()
        found = Recognised(api.GetUTF8Text(), api.MeanTextConf() / 100)
        api.Clear()
        return found

    def _api(self) -> Any:
        if self._loaded is None:
            self._loaded = tesserocr.PyTessBaseAPI(
                path=str(self._tessdata),
                lang=self._languages,
                psm=self._segmentation,
                oem=tesserocr.OEM.LSTM_ONLY,
            )
            self._loaded.SetVariable("debug_file", os.devnull)
        return self._loaded
