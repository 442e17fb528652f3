"""Settings of Claude Code, Cline and Codex: what is missing or mixed up; no key is ever shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixkit.doctor.client_config import config_checks, read_client_config
from prefixkit.errors import ParamsError

LOCAL = "http://127.0.0.1:8000/v1"
SECRET = "sk-ant-" + "q7" * 20


def checks(tmp_path: Path, data: Any, name: str = "settings.json", models: list[str] | None = None) -> Any:
    file = tmp_path / name
    file.write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    config = read_client_config(file)
    found = config_checks(config, LOCAL, models)
    assert SECRET not in repr(config) + repr(found)
    return found


def claude(**env: str) -> dict[str, Any]:
    return {"env": {f"ANTHROPIC_{k.upper()}": v for k, v in env.items()}, "permissions": {"allow": ["Bash"]}}


def test_a_complete_configuration_is_fine(tmp_path: Path) -> None:
    data = claude(base_url="http://127.0.0.1:8000", auth_token="token", model="tiny")
    [check] = checks(tmp_path, data, models=["tiny"])
    assert check.status == "ok"
    assert "Claude Code" in check.found


@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({"auth_token": "t", "model": "tiny"}, "base URL"),
        ({"base_url": "http://127.0.0.1:8000", "model": "tiny"}, "key"),
        ({"base_url": "http://127.0.0.1:8000", "api_key": "t"}, "model"),
        ({}, "base URL, key, model"),
    ],
)
def test_what_claude_code_lacks_is_named(tmp_path: Path, env: dict[str, str], missing: str) -> None:
    data = {**claude(**env), "apiKeyHelper": ""}
    [check] = checks(tmp_path, data)
    assert check.status == "failed"
    assert check.found == f"Claude Code configuration lacks: {missing}"


def test_a_cloud_key_for_a_local_server_is_named_without_showing_it(tmp_path: Path) -> None:
    data = claude(base_url="http://127.0.0.1:8000", api_key=SECRET, model="tiny")
    [check] = checks(tmp_path, data)
    assert "cloud key to the local server 127.0.0.1" in check.found


def test_a_placeholder_for_a_cloud_service_is_named(tmp_path: Path) -> None:
    found = checks(tmp_path, claude(base_url="https://gw.example.org/api", api_key="EMPTY", model="m"))
    assert any("placeholder" in c.found for c in found)


def test_claude_code_adds_the_version_path_itself(tmp_path: Path) -> None:
    [check] = checks(tmp_path, claude(base_url=LOCAL, auth_token="t", model="m"))
    assert "/v1/messages" in check.found


@pytest.mark.parametrize(
    ("data", "name", "client"),
    [
        ({"claudeAiOauth": {"accessToken": SECRET, "refreshToken": SECRET}}, ".credentials.json", "Claude Code"),
        (
            {"OPENAI_API_KEY": None, "tokens": {"id_token": SECRET, "access_token": SECRET}, "last_refresh": "x"},
            "auth.json",
            "Codex",
        ),
        ({"OPENAI_API_KEY": "word", "auth_mode": "chatgpt"}, "auth.json", "Codex"),
        ({"apiProvider": "openai-codex", "openAiModelId": "m"}, "cline.json", "Cline"),
    ],
)
def test_oauth_where_a_key_is_meant_is_named(tmp_path: Path, data: Any, name: str, client: str) -> None:
    check = checks(tmp_path, data, name)[0]
    assert check.status == "failed"
    assert f"{client} signs in with OAuth where an API key is meant" in check.found
    assert "all three" in check.remedy


def test_codex_takes_url_and_model_from_the_file_beside(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'model = "tiny"\nmodel_provider = "local"\n[model_providers.local]\nbase_url = "http://127.0.0.1:8000/v1"\n'
    )
    [check] = checks(tmp_path, {"OPENAI_API_KEY": "local-word"}, "auth.json", ["tiny"])
    assert (check.status, "Codex" in check.found) == ("ok", True)


def test_codex_names_the_variable_that_holds_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'model = "m"\n[model_providers.a]\nbase_url = "http://127.0.0.1:8000/v1"\nenv_key = "PREFIXKIT_TEST_KEY"\n'
    assert checks(tmp_path, text, "config.toml")[0].found.endswith("lacks: key")
    monkeypatch.setenv("PREFIXKIT_TEST_KEY", "word")
    assert checks(tmp_path, text, "config.toml")[0].status == "ok"


def test_cline_is_read_with_its_own_names(tmp_path: Path) -> None:
    data = {"apiProvider": "openai", "openAiBaseUrl": LOCAL, "openAiApiKey": "word", "openAiModelId": "other"}
    [check] = checks(tmp_path, data, models=["tiny"])
    assert "Cline asks for model 'other', the server has tiny" in check.found


@pytest.mark.parametrize("key", ["", "  ", "sk-x\ny", "Bearer "])
def test_an_unusable_key_is_named(tmp_path: Path, key: str) -> None:
    found = checks(tmp_path, claude(base_url="http://127.0.0.1:8000", auth_token=key, model="m"))
    assert found[0].status == "failed"
    assert any("key" in c.found for c in found)


def test_blanks_around_a_key_are_named(tmp_path: Path) -> None:
    found = checks(tmp_path, claude(base_url="http://127.0.0.1:8000", auth_token="word\n", model="m"))
    assert any("line break" in c.found for c in found)


def test_a_client_that_talks_to_another_server_is_named(tmp_path: Path) -> None:
    found = checks(tmp_path, claude(base_url="http://127.0.0.1:9000", auth_token="word", model="m"))
    assert any("talks to 127.0.0.1:9000, not to 127.0.0.1:8000" in c.found for c in found)


def test_comments_and_trailing_commas_of_an_editor_are_read(tmp_path: Path) -> None:
    text = (
        '{\n // a // note\n "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8000", /* x */ "ANTHROPIC_MODEL": "m",},\n}'
    )
    assert checks(tmp_path, text)[0].found.endswith("lacks: key")


def test_settings_of_tool_servers_are_not_the_clients(tmp_path: Path) -> None:
    data = {**claude(), "mcpServers": {"x": {"base_url": "http://h", "api_key": "k", "model": "m"}}}
    data["env"]["ANTHROPIC_MODEL"] = "m"
    assert checks(tmp_path, data)[0].found.endswith("lacks: base URL, key")


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_file_that_is_no_settings_file_is_bad_input(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ParamsError):
        read_client_config(file)
