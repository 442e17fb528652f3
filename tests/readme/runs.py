"""How documented commands are run for real; each checks that what was promised is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import yaml

from prefixkit import load_params, paths
from prefixkit.params.document import table
from prefixkit.probe import Client
from prefixkit.records import last, probes, read_records
from prefixkit.render import RENDERED
from prefixkit.server import flags
from tests.browser.chromium import until
from tests.readme.checkout import EXPERIMENTS, copy_results
from tests.readme.commands import Command
from tests.readme.desk import SECRET, Desk, at, one, server

STOP_S = 60
QUESTION = [{"role": "user", "content": "What does a prefix cache keep? " * 50}]


def clone(desk: Desk, _: Command) -> None:
    """Clone once more, into an empty folder."""
    folder = desk.folder / "empty"
    folder.mkdir()
    assert (desk.clone(folder) / "Makefile").is_file()


def make_help(desk: Desk, command: Command) -> None:
    """Targets are listed."""
    assert "make report" in desk.checkout.sh(command.text)


def report(desk: Desk, _: Command) -> None:
    """Both arms are measured on the server that the arm asks for, the cloud arm is skipped, the article is there."""
    for arm, caching in (("off", False), ("on", True)):
        record = last(read_records(desk.results / f"{arm}.jsonl"), "run")
        assert record and record["enable_prefix_caching"] is caching
    assert all((desk.results / name).stat().st_size for name in RENDERED)
    assert "TAOTOKEN" in desk.reported


def report_with_another_python(desk: Desk, command: Command) -> None:
    """The Python that is named runs the set-up; what is measured is not measured again."""
    assert desk.results
    name = command.text.partition("PYTHON=")[2].split()[0]
    asked = desk.folder / "asked"
    env = desk.checkout.on_path(name, f'touch "{asked}"\nexec "{sys.executable}" "$@"')
    said = desk.checkout.sh(command.text, env=env)
    assert asked.exists() and "measuring" not in said and "article: up to date" in said


def make_test(desk: Desk, command: Command) -> None:
    """It runs set-up and tests; this run being one of its kind, one file of them. Its first part is `make lint`."""
    assert "mypy" in desk.checkout.sh(f"{command.text} -n")
    line = command.text.replace("make", "make --old-file=lint")
    assert " passed" in desk.checkout.sh(line, env={"PYTEST_ADDOPTS": "tests/metrics/test_expected.py"})


def make_lint(desk: Desk, command: Command) -> None:
    """Style and types hold in a fresh clone; what mypy knows of this checkout spares it most of its time."""
    known = paths.ROOT / ".mypy_cache"
    if known.is_dir():
        shutil.copytree(known, desk.checkout.root / ".mypy_cache", dirs_exist_ok=True)
    assert "no issues found" in desk.checkout.sh(command.text)


def lab(desk: Desk, command: Command) -> None:
    """JupyterLab answers where it says, and has the notebooks; the browser that it opens does nothing."""
    env = {f"JUPYTER_{name}_DIR": str(desk.folder / "jupyter") for name in ("CONFIG", "DATA", "RUNTIME")}
    with desk.checkout.running(command.text, BROWSER="true", **env) as process:
        url = first_line(process, r"http://localhost:\d+/lab\S*")[0]
        root, _, token = url.partition("/lab")
        address = f"{root}/api/contents/explore.ipynb{token or '?'}&content=0"
        until(lambda: _answers(address), "JupyterLab, which says so before it listens, to answer", STOP_S)
        stop(process, signal.SIGTERM)


def _answers(address: str) -> bool:
    """Return whether a notebook is there."""
    try:
        with urlopen(address, timeout=STOP_S) as answer:
            return bool(json.load(answer)["type"] == "notebook")
    except ConnectionError:
        return False
    except URLError as error:
        if isinstance(error.reason, ConnectionError):
            return False
        raise


def first_line(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Wait for a line that holds a pattern; fail with what was printed when the process ends before."""
    said = []
    assert process.stdout
    for line in process.stdout:
        said.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError("".join(said))


def stop(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to a command's processes, as a terminal does, and wait until none of them is there."""
    members = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    os.killpg(process.pid, number)
    process.communicate(timeout=STOP_S)
    assert len(members) > 1
    assert psutil.wait_procs(members, timeout=STOP_S)[1] == []


def papermill(desk: Desk, command: Command) -> None:
    """One arm is measured by hand, into the folder that is named."""
    kept = desk.folder / "kept"
    desk.results.rename(kept)
    desk.results.mkdir()
    try:
        desk.checkout.sh(command.text)
        end = last(read_records(desk.results / "on.jsonl"), "end")
        assert end and end["status"] == "ok"
        assert (desk.checkout.root / "on.ipynb").is_file()
    finally:
        shutil.rmtree(desk.results)
        kept.rename(desk.results)


def report_of_a_copied_profile(desk: Desk, command: Command) -> None:
    """A profile by its path has a folder of its own; records of the same parameters are not measured again."""
    path = re.search(r"PROFILE=(\S+)", command.text)
    assert path
    copied, target = desk.checkout.root / path[1], desk.checkout.out / Path(path[1]).stem
    shutil.copy(desk.checkout.root / "params" / "cpu.yaml", copied)
    copy_results(desk.results, target)
    said = desk.checkout.sh(command.text)
    assert "measuring" not in said and f"article: up to date, {target / 'report.html'}" in said
    shutil.rmtree(target)


def report_of_a_running_server(desk: Desk, command: Command) -> None:
    """The profile of the documentation, a short one, at a server of ours: arm on is measured, nothing is started."""
    profile = one("# params/")
    with server(model=yaml.safe_load(profile.text)["model"]["name"], api_key=SECRET) as fake:
        written = at(profile, fake) + yaml.safe_dump({"experiments": EXPERIMENTS})
        (desk.checkout.root / profile.text.split()[1]).write_text(written)
        desk.checkout.sh(command.text, env={"VLLM_KEY": SECRET})
        assert fake.requests
    out = desk.checkout.out / "mine"
    controls = [p for p in probes(read_records(out / "on.jsonl"), "length") if p["phase"] == "control"]
    assert controls and not any(p["cached_tokens"] for p in controls)
    assert (out / "report.pdf").is_file() and not (out / "off.jsonl").exists()


def write_profile(_: Desk, command: Command) -> None:
    """A whole profile is valid."""
    params = load_params(**yaml.safe_load(command.text))
    assert params.server.launcher == "url"


def load_parameters(_: Desk, command: Command) -> None:
    """A part of a profile is valid, and is what is loaded."""
    given = yaml.safe_load(command.text)
    loaded = load_params("cpu", **given).model_dump()
    for section, value in given.items():
        for key, content in value.items():
            found = loaded[section][key]
            assert found == content or content.items() <= found.items()


def render_flags(_: Desk, command: Command) -> None:
    """Engine arguments become vLLM's flags."""
    given = yaml.safe_load(command.text)
    given = given.get("server", {}).get("engine_args", given)
    params = load_params("cpu", server={"engine_args": given})
    args = flags.render(flags.parse(params.server.engine_args), None).args
    for name, value in given.items():
        at_flag = args.index(f"--{name.replace('_', '-')}")
        assert args[at_flag + 1] == str(value)


def doctor(desk: Desk, command: Command) -> None:
    """A server whose cache works is found in order, by few requests."""
    with server() as fake:
        said = desk.checkout.sh(at(command, fake))
        assert fake.root_url in said
        assert 0 < len(fake.requests) <= 20


def export_and_report(desk: Desk, command: Command) -> None:
    """With the variables exported the report measures the cloud arm alone, and the key is written nowhere."""
    cloud = load_params("cpu", "cloud").cloud
    assert re.match(r"export (\w+)=", command.text)[1] in (cloud.base_url_env, cloud.api_key_env)  # type: ignore[index]
    assert re.findall(r"measuring arm (\w+)", desk.exported) == ["cloud"]
    end = last(read_records(desk.results / "cloud.jsonl"), "end")
    assert end and end["status"] == "ok"
    files = [path for path in desk.checkout.out.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def compare(desk: Desk, command: Command) -> None:
    """Two runs are compared."""
    for name in command.text.split()[-2:]:
        copy_results(desk.results, desk.checkout.root / name)
    assert "slope, on" in desk.checkout.sh(command.text)


def claims(desk: Desk, command: Command) -> None:
    """The check is answered by the exit code, on the number that claims.json holds."""
    name, bound = re.search(r'CHECK="(\w+)>=([\d.]+)"', command.text).groups()  # type: ignore[union-attr]
    value = json.loads((desk.results / "claims.json").read_text("utf-8"))[name]["value"]
    holds = value >= float(bound)
    assert f"{name}>={bound}" in desk.checkout.sh(command.text, ok=holds)


def publish(desk: Desk, command: Command) -> None:
    """The set holds its records, its article and checksums."""
    assert desk.published.name in command.text
    names = {path.name for path in desk.published.iterdir()}
    assert {"on.jsonl.gz", "off.jsonl.gz", "report.html", "report.pdf", "SHA256SUMS"} <= names


def published(desk: Desk, command: Command) -> None:
    """A reader renders the set again, and finds every number as published."""
    said = desk.checkout.sh(command.text.replace("first", desk.published.name))
    if "verify" in command.text:
        assert "claims are the same, all files are as published" in said
    else:
        assert all((desk.checkout.out / desk.published.name / name).is_file() for name in RENDERED)


def serve(desk: Desk, command: Command) -> None:
    """A server answers until Ctrl-C, and is gone then."""
    with desk.checkout.running(command.text) as process:
        url = first_line(process, r"^http://\S+/v1")[0]
        with Client(url, "?") as client:
            assert client.models()
        stop(process, signal.SIGINT)
        assert process.returncode == 0


def probe(desk: Desk, command: Command) -> None:
    """So many requests are timed."""
    model, repeats = re.search(r"--model (\S+) --repeats (\d+)", command.text).groups()  # type: ignore[union-attr]
    with server(model=model) as fake:
        assert "ms" in desk.checkout.sh(at(command, fake))
        assert len(fake.requests) == int(repeats)


def hit_rate(desk: Desk, command: Command) -> None:
    """The rate between two pages is that of the requests between them."""
    with server() as fake, Client(fake.url, "fake") as client:
        pages = [desk.checkout.root / name for name in command.text.split()[-2:]]
        for page in pages:
            client.probe(QUESTION)
            with urlopen(fake.metrics_url, timeout=STOP_S) as answer:
                page.write_bytes(answer.read())
        probe = client.probe(QUESTION)
    said = json.loads(desk.checkout.sh(f"{command.text} --json"))
    assert (said["status"], said["hits"], said["queries"]) == ("ok", probe.cached_tokens, probe.prompt_tokens)
    assert desk.checkout.sh(command.text)


def python(desk: Desk, command: Command) -> None:
    """The script starts a server, times two requests and leaves nothing."""
    script = desk.checkout.root / "script.py"
    script.write_text(command.text)
    last_line = desk.checkout.sh(f".venv/bin/python {script.name}").splitlines()[-1]
    assert len([float(word) for word in last_line.split()]) == 2


def document(desk: Desk, command: Command) -> None:
    """The table of parameters is printed; `python` is that of the environment."""
    venv = {"PATH": f"{desk.checkout.root / '.venv' / 'bin'}{os.pathsep}{desk.checkout.env['PATH']}"}
    assert desk.checkout.sh(command.text, env=venv).strip() == table()
