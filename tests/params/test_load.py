"""Parameter files: strict, merged, and one line that names file and key when something is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from prefixkit import load_params, paths
from prefixkit.errors import ParamsError
from prefixkit.params import load_arm, params_hash


def profile(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


MODEL = "model: {name: m, path: x}\n"


@pytest.mark.parametrize(
    "name", sorted(p.stem for p in paths.PARAMS.glob("*.yaml") if p.stem not in ("on", "off", "cloud"))
)
@pytest.mark.parametrize("arm", ["on", "off", "cloud"])
def test_every_shipped_profile_works_with_every_arm(name: str, arm: str) -> None:
    assert load_arm(name, arm).enable_prefix_caching is {"on": True, "off": False, "cloud": None}[arm]


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("experiments: {length: {repeats: '5'}}", "experiments.length.repeats", "got str '5'"),
        ("experiments: {switch: 'false'}", "experiments.switch", "got str 'false'"),
        ("experiments: {length: {lenghts: [1]}}", "experiments.length.lenghts", "unknown key"),
        ("experiments: {length: {lengths: [0]}}", "experiments.length.lengths.0", "greater than or equal to 1"),
        ("server: {port: '80'}", "server.port", "got str '80'"),
        ("server: {port: 70000}", "server.port", "65535"),
        ("server: {launcher: url}", "server", "needs `url`"),
        ("report: {control_margin: 5}", "report.control_margin", "less than or equal to 1"),
        ("surprise: 1", "surprise", "unknown key"),
        ("server: {engine_args: 3}", "server.engine_args", "got int 3"),
        (
            "experiments: {switch: {system_prompt: {file: no/such.txt}}}",
            "experiments.switch.system_prompt.file",
            "cannot read",
        ),
    ],
)
def test_a_bad_value_is_one_line_with_file_and_key(tmp_path: Path, text: str, key: str, reason: str) -> None:
    path = profile(tmp_path, MODEL + text)
    with pytest.raises(ParamsError) as caught:
        load_params(path)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    assert f"{key}:" in line
    assert reason in line
    assert caught.value.exit_code == 2


def test_a_boolean_given_as_text_is_refused() -> None:
    with pytest.raises(ParamsError, match=r"enable_prefix_caching.*got str 'false'"):
        load_params("cpu", "on", enable_prefix_caching="false")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"model: {name: m}\nmodel: {name: n}\n", "stands twice"),
        (b"model: [unclosed\n", "line"),
        (b"- a\n- b\n", "list"),
        (b"model: {name: \xff\xfe}\n", "UTF-8"),
        (b"", "model: missing key"),
    ],
)
def test_a_file_that_is_no_mapping_names_the_fault(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(ParamsError) as caught:
        load_params(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ParamsError, match=r"no parameter file 'gpuu'.*cpu.*gpu"):
        load_params("gpuu")


def test_later_files_and_overrides_win_key_by_key(tmp_path: Path) -> None:
    first = profile(tmp_path, MODEL + "server: {engine_args: {a: 1, b: 2}}", "first.yaml")
    second = profile(tmp_path, "server: {engine_args: {b: 3}}", "second.yaml")
    assert load_params(first, second).server.engine_args == {"a": 1, "b": 3}
    assert load_params(first, second, server={"engine_args": {"a": 9}}).server.engine_args == {"a": 9, "b": 3}


def test_the_hash_follows_what_is_measured_and_nothing_else(tmp_path: Path) -> None:
    base = params_hash(load_params(profile(tmp_path, MODEL)))
    assert params_hash(load_params(profile(tmp_path, "# a comment\n" + MODEL + "report: {lang: zh}\n"))) == base
    for change in ("experiments: {warmup_requests: 1}", "server: {ready_timeout_s: 1.0}", "cloud: {models: [x]}"):
        assert params_hash(load_params(profile(tmp_path, MODEL + change))) != base
    assert params_hash(load_params(profile(tmp_path, MODEL), enable_prefix_caching=True)) != base


def test_the_hash_follows_the_text_of_a_prompt_file_not_its_name(tmp_path: Path) -> None:
    hashes = []
    for name, text in (("a.txt", "same"), ("b.txt", "same"), ("c.txt", "other")):
        (tmp_path / name).write_text(text, "utf-8")
        switch = f"experiments: {{switch: {{system_prompt: {{file: '{tmp_path / name}'}}}}}}"
        hashes.append(params_hash(load_params(profile(tmp_path, MODEL + switch))))
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_arm_that_changes_more_than_the_cache_is_refused(tmp_path: Path) -> None:
    arm = profile(tmp_path, "enable_prefix_caching: true\nserver: {port: 8001}\n", "on.yaml")
    with pytest.raises(ParamsError, match=r"on\.yaml: server: an arm changes `enable_prefix_caching` and nothing else"):
        load_arm("cpu", str(arm))


def test_an_arm_that_says_the_opposite_of_its_name_is_refused(tmp_path: Path) -> None:
    arm = profile(tmp_path, "enable_prefix_caching: false\n", "on.yaml")
    with pytest.raises(ParamsError, match="must be true for arm on"):
        load_arm("cpu", str(arm))


def test_a_profile_may_not_set_the_cache_itself(tmp_path: Path) -> None:
    path = profile(tmp_path, MODEL + "enable_prefix_caching: true\n")
    with pytest.raises(ParamsError, match="set by the arm"):
        load_arm(str(path), "on")


def test_an_experiment_that_came_later_leaves_older_records_valid_where_it_is_off(tmp_path: Path) -> None:
    off = load_params(profile(tmp_path, MODEL))
    assert params_hash(off) == params_hash(load_params(profile(tmp_path, MODEL + "experiments: {affinity: false}\n")))
    assert params_hash(load_params(profile(tmp_path, MODEL + "experiments: {affinity: {}}\n"))) != params_hash(off)
    known = json.loads(off.model_dump_json())
    del known["experiments"]["affinity"], known["report"]
    text = json.dumps(known, sort_keys=True, ensure_ascii=False)
    assert params_hash(off) == hashlib.sha256(text.encode()).hexdigest()[:16]
