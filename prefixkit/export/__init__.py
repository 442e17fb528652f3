"""The article: an executed notebook becomes one HTML page and one PDF.

How a report notebook is written:

- The first cell is Markdown and starts with `# Title`; the rest of that cell is the byline. Sections are `##` and `###`
  and are numbered here: `## Thanks {.unnumbered}` is not, `## Counts {.appendix}` gets a letter.
- Cell tags: `abstract` sets a cell (Markdown, or a code cell's outputs) as the abstract, `box` in a box, `show_code`
  shows a code cell's source (hidden otherwise), `remove_cell` and papermill's `parameters` leave the cell out.
- `show(obj, label="fig-x", caption="...", alt="...")` displays a matplotlib figure (as SVG) or, labelled `tbl-x`, a
  DataFrame. Captions are Markdown; a figure needs alt text. Refer to them as `@fig-x`, `@tbl-x`, or `@sec-x` for
  `## Heading {#sec-x}`; next to Chinese text write `[@fig-x]`. Citations: `[@key]` from report/references.bib.
- Markdown cells hold `{{ name }}` placeholders, filled from claims.json: `{{ name }}` value with unit,
  `{{ name.value }}` without it, `{{ name.ci }}` the interval, `{{ name.full }}` both, `{{ name.low }}`,
  `{{ name.high }}`, `{{ name.abs }}` without sign. A fraction prints as a percentage, a text as it is.
  Output of code cells is never filled.
- claims.json is looked for in papermill's parameters `out` and `data`, then beside the notebook;
  `carry_claims(claims)` in a code cell lets the executed notebook carry them, for exports from JupyterLab. The text
  claims `stamp` (foot of each page) and `measured_at` (ISO 8601, the PDF's date) are used when they are there.
- Notebook metadata `prefixkit.lang` is `en` or `zh`.
- Text that came from a server or a prompt goes into Markdown output or captions through `literal(text)`; stdout and
  DataFrames are escaped here.
- `preview(data)` shows the filled Markdown cells of the open notebook in JupyterLab.
"""

from prefixkit.export.placeholders import carry_claims, preview
from prefixkit.export.show import literal, show

__all__ = ["carry_claims", "literal", "preview", "show"]
