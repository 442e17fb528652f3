"""From records to the article: run the report notebook on a folder of records, then export what it became."""

from __future__ import annotations

from pathlib import Path

import nbformat

from prefixkit import paths
from prefixkit.article.data import load, write_settings
from prefixkit.errors import RenderError
from prefixkit.export.article import ArticleExporter, ArticleHTMLExporter, ArticlePDFExporter
from prefixkit.export.placeholders import CLAIMS_MIME
from prefixkit.notebook import execute
from prefixkit.params.models import Report

EXECUTED, HTML, PDF, CLAIMS = "report.ipynb", "report.html", "report.pdf", "claims.json"
RENDERED = (HTML, PDF, CLAIMS, EXECUTED)


def report_notebook(lang: str) -> Path:
    """Return the report notebook in a language."""
    return paths.NOTEBOOKS / ("report.ipynb" if lang == "en" else f"report.{lang}.ipynb")


def render_report(
    data: Path, out: Path, report: Report | None = None, *, lang: str | None = None, compare: str | None = None
) -> None:
    """Write the article on the records in `data` to `out`: executed notebook, claims, figures, HTML, PDF.

    `report` is stored beside the records; without it the stored one counts. `lang` overrides its language,
    `compare` the run that is set beside this one.
    Raises RenderError when only the PDF failed too; the HTML is there by then.
    """
    if report is not None:
        write_settings(data, report.model_dump(mode="json"))
    settings = load(data).settings
    lang = lang or settings.lang
    executed = out / EXECUTED
    parameters = {"data": shown(data), "out": shown(out), "lang": lang, **({"compare": compare} if compare else {})}
    execute(report_notebook(lang), executed, parameters, show_output=False)
    _finish(executed, settings.title)
    export(executed, out)


def export(executed: Path, out: Path) -> None:
    """Write an executed notebook as HTML, then as PDF; the HTML stays when the PDF cannot be made."""
    for exporter, name in ((ArticleHTMLExporter, HTML), (ArticlePDFExporter, PDF)):
        (out / name).unlink(missing_ok=True)  # what is there belongs to another notebook
        try:
            _write(exporter(), executed, out / name)
        except RenderError as error:
            kept = f"; {out / HTML} is there" if name == PDF else ""
            raise RenderError(f"{name}: {error.message}{kept}", error.remedy) from None


def shown(path: Path) -> str:
    """Return a path as a notebook should hold it: relative to the project root where it lies below."""
    path = path.resolve()
    return path.relative_to(paths.ROOT).as_posix() if path.is_relative_to(paths.ROOT) else str(path)


def _write(exporter: ArticleExporter, executed: Path, target: Path) -> None:
    body, _ = exporter.from_filename(str(executed))
    part = target.with_suffix(target.suffix + ".part")
    part.write_bytes(body.encode("utf-8") if isinstance(body, str) else body)
    part.replace(target)


def _finish(executed: Path, title: str | None) -> None:
    """Set the title that was asked for, and drop the claims that the notebook carries: claims.json lies beside it."""
    notebook = nbformat.read(executed, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if CLAIMS_MIME not in output.get("data", {})]
    if title:
        first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
        if first is None or not first.source.startswith("# "):
            raise RenderError("report.title: the notebook does not begin with `# Title`", "add that cell")
        first.source = "\n".join([f"# {title}", *first.source.splitlines()[1:]])
    nbformat.write(notebook, executed)  # type: ignore[no-untyped-call]
