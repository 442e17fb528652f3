import pytest

from prefixkit.errors import ProbeError
from prefixkit.probe.proxies import is_loopback, proxy_for


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "0.0.0.0"]
)
def test_this_machine_is_never_behind_a_proxy(host, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("all_proxy", "socks5://proxy:1080")
    assert is_loopback(host) and proxy_for("http", host) is None


def test_other_hosts_take_the_proxy_of_their_scheme(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:p%40ss@proxy:3128/")
    assert proxy_for("http", "example.com") is None
    proxy = proxy_for("https", "example.com")
    assert (proxy.host, proxy.port, proxy.variable) == ("proxy", 3128, "https_proxy")
    assert proxy.authorization == "Basic bWU6cEBzcw==" and "bWU6" not in repr(proxy)


def test_no_proxy_is_honoured(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "example.com")
    assert proxy_for("http", "api.example.com") is None
    assert proxy_for("http", "example.org") is not None


def test_a_proxy_without_scheme_or_port_is_http_on_80(monkeypatch):
    monkeypatch.setenv("all_proxy", "proxy")
    assert (proxy_for("https", "example.com").host, proxy_for("https", "example.com").port) == ("proxy", 80)


def test_socks_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://proxy:1080")
    with pytest.raises(ProbeError, match="socks5 proxy"):
        proxy_for("http", "example.com")
