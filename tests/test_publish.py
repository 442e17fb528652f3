from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixkit import paths, publish
from prefixkit.__main__ import main
from prefixkit.errors import ParamsError
from prefixkit.publish import PublishError, Verdict, trimmed
from prefixkit.records import read_records
from tests.fakes import records


def fake_render(data: Path, out: Path, *_: object, **__: object) -> None:
    """Stand in for the article: claims that follow from the records, a page, a figure, an executed notebook."""
    out.mkdir(parents=True, exist_ok=True)
    lines = [line for file in sorted(data.glob("*.jsonl.gz")) for line in read_records(file)]
    total = sum(line.get("ttft_ms") or 0 for line in lines)
    claims = {"total_ms": {"value": total, "unit": "ms", "ci": None, "source": "all"}}
    (out / "claims.json").write_text(json.dumps(claims))
    (out / "report.html").write_text("<h1>T</h1>")
    (out / "report.pdf").write_bytes(b"%PDF-1.7 /home/ann")
    (out / "report.ipynb").write_text(json.dumps({"data": str(data), "out": str(out)}))
    (out / "figures").mkdir(exist_ok=True)
    (out / "figures/length.csv").write_text("x,y\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A clean project whose profile cpu is measured."""
    root = tmp_path / "project"
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(paths, "OUT", root / "report/out")
    monkeypatch.setattr(paths, "PUBLISHED", root / "report/published")
    monkeypatch.setattr(publish, "git", lambda: {"commit": "0123abc", "dirty": False})
    monkeypatch.setattr(publish, "render_report", fake_render)
    source = root / "report/out/cpu"
    records.complete(source)
    (source / "on.2026-01-01T000000Z.jsonl").write_text("{}\n")
    (source / "measure.on.ipynb").write_text(json.dumps({"cwd": str(root / "notebooks")}))
    (source / "on.server.log").write_text("".join(f"line {n} in {root}\n" for n in range(1000)))
    yield root


def append(project: Path, arm: str, /, **record: Any) -> None:
    """Append a record to an arm of profile cpu."""
    with (project / f"report/out/cpu/{arm}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


def test_a_published_set_holds_what_it_takes_to_render_and_check_it_again(project: Path) -> None:
    folder = publish.publish("example", "cpu", lambda _: None)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "SHA256SUMS",
        "claims.json",
        "cloud.jsonl.gz",
        "figures/length.csv",
        "measure.on.ipynb",
        "off.jsonl.gz",
        "on.jsonl.gz",
        "on.server.log",
        "report.html",
        "report.ipynb",
        "report.pdf",
    ]
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert [path.name for path in project.glob("report/published/*")] == ["example"]


def test_no_folder_of_this_machine_is_published(project: Path) -> None:
    append(project, "on", record="note", where=str(project / ".venv/bin/python"), home=str(Path.home() / ".cache"))
    folder = publish.publish("example", "cpu", lambda _: None)
    last = read_records(folder / "on.jsonl.gz")[-1]
    assert (last["where"], last["home"]) == ("./.venv/bin/python", "~/.cache")
    assert json.loads((folder / "report.ipynb").read_text()) == dict.fromkeys(
        ("data", "out"), "report/published/example"
    )
    assert json.loads((folder / "measure.on.ipynb").read_text()) == {"cwd": "./notebooks"}
    texts = [gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in folder.rglob("*.*")]
    assert not any(str(project).encode() in text for text in texts)


def test_no_folder_of_the_machine_that_measured_is_published(project: Path) -> None:
    append(project, "on", record="note", root="/srv/there", where="/srv/there/.models/m", beside="/srv/thereafter")
    last = read_records(publish.publish("example", "cpu", lambda _: None) / "on.jsonl.gz")[-1]
    assert (last["root"], last["where"], last["beside"]) == (".", "./.models/m", "/srv/thereafter")


@pytest.mark.usefixtures("project")
def test_publishing_twice_gives_the_same_bytes() -> None:
    sums = [(publish.publish("example", "cpu", lambda _: None) / "SHA256SUMS").read_text() for _ in range(2)]
    assert sums[0] == sums[1]


def test_a_log_keeps_its_head_and_tail() -> None:
    log = trimmed("".join(f"{n}\n" for n in range(1000))).splitlines()
    assert log[0] == "0" and log[-1] == "999" and "[... 700 lines left out ...]" in log
    assert trimmed("one\ntwo\n") == "one\ntwo\n"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("dirty", "reason"), [(True, "uncommitted changes"), (None, "not a git checkout")])
def test_uncommitted_changes_are_refused(dirty: bool | None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "git", lambda: {"commit": "x", "dirty": dirty})
    with pytest.raises(PublishError, match=reason):
        publish.publish("example", "cpu")


def test_an_arm_measured_with_uncommitted_changes_is_refused(project: Path) -> None:
    append(project, "off", record="run", git={"commit": "x", "dirty": True})
    with pytest.raises(PublishError, match="arm off was measured with uncommitted changes"):
        publish.publish("example", "cpu")


@pytest.mark.parametrize("status", ["refused", "failed", "interrupted", "skipped"])
def test_an_incomplete_arm_is_refused(project: Path, status: str) -> None:
    append(project, "off", record="end", status=status, reason="it stopped")
    with pytest.raises(PublishError, match=rf"arm off .* is incomplete: {status} \(it stopped\)"):
        publish.publish("example", "cpu")
    assert not (project / "report/published/example").exists()


def test_a_missing_arm_is_refused_but_for_the_cloud(project: Path) -> None:
    (project / "report/out/cpu/cloud.jsonl").unlink()
    publish.publish("example", "cpu", lambda _: None)
    (project / "report/out/cpu/off.jsonl").unlink()
    with pytest.raises(PublishError, match=r"arm off .* not measured"):
        publish.publish("example", "cpu")


def test_a_cloud_arm_skipped_for_want_of_a_key_is_published(project: Path) -> None:
    append(project, "cloud", record="end", status="skipped", reason="no key")
    assert (publish.publish("example", "cpu", lambda _: None) / "cloud.jsonl.gz").is_file()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("on.jsonl", '{"record": "note", "text": "sk-proj-0123456789abcdefghij"}\n'),
        ("on.server.log", "Authorization: Bearer abcdefghijklmnop0123\n"),
        ("measure.on.ipynb", '{"key": "the-gateway-key"}'),
    ],
)
def test_anything_like_a_key_is_refused_without_being_printed(
    project: Path, place: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAOTOKEN_API_KEY", "the-gateway-key")
    with (project / "report/out/cpu" / place).open("a") as file:
        file.write(text)
    with pytest.raises(PublishError, match=r"holds what looks like a key") as refused:
        publish.publish("example", "cpu", lambda _: None)
    assert "0123" not in str(refused.value) and "the-gateway-key" not in str(refused.value)
    assert not any((project / "report/published").iterdir())


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(ParamsError, match="NAME="):
        publish.publish(name, "cpu")


@pytest.mark.usefixtures("project")
def test_what_is_not_published_is_answered_with_what_is() -> None:
    publish.publish("example", "cpu", lambda _: None)
    with pytest.raises(ParamsError, match=r"nothing is published as 'other' -> NAME is one of: example$"):
        publish.published("other")


def test_rendering_again_writes_to_the_out_folder_of_that_name(project: Path) -> None:
    publish.publish("example", "cpu", lambda _: None)
    assert publish.render_published("example") == project / "report/out/example"
    assert (project / "report/out/example/report.html").is_file()


def test_rendering_again_never_goes_over_what_a_profile_of_that_name_measured(project: Path) -> None:
    publish.publish("cpu", "cpu", lambda _: None)
    before = sorted((project / "report/out/cpu").iterdir())
    with pytest.raises(PublishError, match=r"report/out/cpu holds what a profile of that name measured"):
        publish.render_published("cpu")
    assert sorted((project / "report/out/cpu").iterdir()) == before


@pytest.mark.usefixtures("project")
def test_verifying_an_untouched_set_passes() -> None:
    publish.publish("example", "cpu", lambda _: None)
    assert publish.verify("example") == Verdict("example", 1, (), ())
    assert main(["verify", "--name", "example"]) == 0


@pytest.mark.usefixtures("project")
def test_verifying_names_changed_files_and_claims_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    folder = publish.publish("example", "cpu", lambda _: None)
    claims = json.loads((folder / "claims.json").read_text())
    claims["total_ms"]["value"] *= 1.001
    claims["invented"] = {"value": 1, "unit": "ms", "ci": None, "source": ""}
    (folder / "claims.json").write_text(json.dumps(claims))
    (folder / "report.pdf").unlink()
    assert main(["verify", "--name", "example", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"] == ["claims.json", "report.pdf"]
    assert [difference["name"] for difference in answer["differences"]] == ["invented", "total_ms"]
    assert answer["equal"] is False


@pytest.mark.usefixtures("project")
def test_the_commands_answer_bad_names_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("article", "verify", "publish"):
        assert main([command, "--name", "", "--json"]) == 2
        assert "error" in json.loads(capsys.readouterr().out)


def test_claims_may_differ_in_the_last_digits_only() -> None:
    same = publish._same
    assert same({"value": 1.0, "ci": [1, 2]}, {"value": 1.00000001, "ci": [1, 2.0]})
    assert not same({"value": 1.0}, {"value": 1.001})
    assert not same({"value": None}, {"value": 0.0})
    assert same({"value": "text"}, {"value": "text"}) and not same({"value": "a"}, {"value": "b"})


def test_a_run_set_beside_is_another_published_set_and_is_stored(project: Path) -> None:
    publish.publish("earlier", "cpu", lambda _: None)
    folder = publish.publish("later", "cpu", lambda _: None, compare="earlier")
    assert json.loads((folder / "report.json").read_text())["compare"] == "earlier"
    for odd in ("later", "none-such", str(project / "report/out/cpu")):
        with pytest.raises(PublishError, match="not another published set"):
            publish.publish("later", "cpu", lambda _: None, compare=odd)
