"""Run the pandoc that comes in a wheel, and turn what it says into RenderError."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from prefixkit.errors import RenderError

ASSETS = Path(__file__).parent / "assets"
DIALECT = (
    "markdown+lists_without_preceding_blankline+autolink_bare_uris+east_asian_line_breaks"
    "-yaml_metadata_block-smart-subscript-superscript-fancy_lists-example_lists-definition_lists"
)
WORDS = {
    "en": {
        "figure": "Figure",
        "table": "Table",
        "section": "Section",
        "appendix": "Appendix",
        "contents": "Contents",
        "abstract": "Abstract",
        "references": "References",
        "notes": "Notes",
        "skip": "Skip to the text",
    },
    "zh": {
        "figure": "图",
        "table": "表",
        "section": "第",
        "appendix": "附录",
        "contents": "目录",
        "abstract": "摘要",
        "references": "参考文献",
        "notes": "注释",
        "skip": "跳到正文",
    },
}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
FAULTS = re.compile(r"citation \S+ not found|Could not fetch resource.*|Could not convert TeX math.*")


def convert(
    markdown: str,
    target: str,
    folder: Path,
    *,
    lang: str,
    bibliography: Path | None,
    variables: Mapping[str, str],
    options: Sequence[str] = (),
    resources: Sequence[Path] = (),
) -> str:
    """Return `markdown` as `target` (html5 or typst); files are looked for in `folder`, then in `resources`."""
    try:
        import pypandoc
    except ImportError:
        raise RenderError("pandoc is missing", "`make setup`, or pip install pypandoc_binary") from None
    command = [
        pypandoc.get_pandoc_path(),
        f"--from={DIALECT}",
        f"--to={target}",
        "--standalone",
        "--toc",
        "--toc-depth=3",
        f"--resource-path={':'.join(str(path) for path in (folder, *resources))}",
        f"--metadata=lang:{LOCALES[lang]}",
        f"--lua-filter={ASSETS / 'article.lua'}",
        "--citeproc",
        *(["--metadata=link-citations", f"--bibliography={bibliography}"] if bibliography else []),
        f"--metadata=word-dialect:{DIALECT}",
        *(f"--metadata=word-{name}:{word}" for name, word in WORDS[lang].items()),
        *(f"--variable={name}:{value}" for name, value in variables.items()),
        *options,
    ]
    done = subprocess.run(command, input=markdown.encode(), capture_output=True, cwd=folder, check=False)
    said = done.stderr.decode("utf-8", "replace")
    if refusal := re.search(r"prefixkit: (.*?)(?: => (.*))?$", said, re.MULTILINE):
        raise RenderError(refusal[1], refusal[2] or "mend the notebook")
    if done.returncode != 0:
        raise RenderError(f"pandoc failed: {said.strip()[-500:]}", "mend the notebook's Markdown")
    if fault := FAULTS.search(said):
        raise RenderError(f"pandoc: {fault[0]}", "mend the citation, picture or formula")
    return done.stdout.decode("utf-8")
