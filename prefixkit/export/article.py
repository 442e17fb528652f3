"""The two nbconvert exporters, `article-html` and `article-pdf`; `article_html` and `article_pdf` in Jupyter's menu."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter
from traitlets import Integer, Unicode, default

from prefixkit import paths
from prefixkit.errors import RenderError
from prefixkit.export import html, pdf
from prefixkit.export.checks import check_notebook, drop_broken_widgets
from prefixkit.export.markdown import compose
from prefixkit.export.placeholders import Claims, find_claims, language
from prefixkit.export.source import Source


class ArticleExporter(Exporter):
    """Common to both: check the notebook, fill it, hand its Markdown to pandoc."""

    bibliography = Unicode(str(paths.REPORT / "references.bib"), help="BibTeX file of the citations.").tag(config=True)
    timestamp = Integer(
        None,
        allow_none=True,
        help="Date of the article, seconds since 1970; SOURCE_DATE_EPOCH, else claim measured_at.",
    ).tag(config=True)

    def from_notebook_node(  # type: ignore[override]  # like nbconvert's own, it returns a document
        self, nb: Any, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[str | bytes, dict[str, Any]]:
        """Return the article and nbconvert's resources; RenderError names the cell that stands in the way."""
        drop_broken_widgets(nb)
        check_notebook(nb)
        notebook, found = super().from_notebook_node(nb, resources, **kwargs)
        folder = found.get("metadata", {}).get("path")  # "" is the current folder
        claims, lang = find_claims(notebook, folder), language(notebook)
        document = compose(notebook, claims, lang)
        bibliography = Path(self.bibliography)
        with tempfile.TemporaryDirectory(prefix="prefixkit-") as name:
            work = Path(name)
            document.write(work)
            source = Source(
                markdown=document.markdown,
                folder=work,
                resources=() if folder is None else (Path(folder).resolve(),),
                lang=lang,
                bibliography=bibliography.resolve() if bibliography.is_file() else None,
                stamp=str(claims.get("stamp", {}).get("value") or ""),
                timestamp=self._timestamp(claims),
            )
            return self.render(source), found

    def render(self, source: Source) -> str | bytes:
        """Return the finished article."""
        raise NotImplementedError

    def _timestamp(self, claims: Claims) -> int | None:
        if self.timestamp is not None:
            return int(self.timestamp)
        if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
            if not epoch.isdecimal():
                raise RenderError(f"SOURCE_DATE_EPOCH is {epoch!r}", "give whole seconds since 1970, or unset it")
            return int(epoch)
        if measured := claims.get("measured_at", {}).get("value"):
            moment = datetime.fromisoformat(str(measured))
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        return None


class ArticleHTMLExporter(ArticleExporter):
    """One HTML file: no script, nothing loaded from anywhere."""

    export_from_notebook = "Article HTML"
    output_mimetype = "text/html"

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def render(self, source: Source) -> str:
        """Return the page."""
        return html.render(source)


class ArticlePDFExporter(ArticleExporter):
    """One PDF file: tagged, PDF/UA-1, the same bytes from the same notebook."""

    export_from_notebook = "Article PDF"
    output_mimetype = "application/pdf"

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".pdf"

    def render(self, source: Source) -> bytes:
        """Return the file's bytes."""
        return pdf.render(source)


def _serving() -> bool:
    module = sys.modules.get("jupyter_server.serverapp")
    return module is not None and bool(module.ServerApp.initialized())


class CommandHTMLExporter(ArticleHTMLExporter):
    """The same for `jupyter nbconvert --to article-html`; left out of the menu of a server, which cannot serve it."""

    @default("enabled")
    def _enabled_default(self) -> bool:
        return not _serving()


class CommandPDFExporter(ArticlePDFExporter):
    """The same for `jupyter nbconvert --to article-pdf`; left out of the menu of a server, which cannot serve it."""

    @default("enabled")
    def _enabled_default(self) -> bool:
        return not _serving()
