import pytest

from prefixkit.errors import ProbeError
from prefixkit.probe.urls import endpoints


@pytest.mark.parametrize(
    ("given", "base", "root"),
    [
        ("http://h:8000", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/v1", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/v1/", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000//v1//", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/v1/v1", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/v1/chat/completions", "http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/metrics", "http://h:8000/v1", "http://h:8000"),
        (" HTTP://h:8000/v1\n", "http://h:8000/v1", "http://h:8000"),
        ("http://[::1]:8000", "http://[::1]:8000/v1", "http://[::1]:8000"),
        ("https://x/inference/v1", "https://x/inference/v1", "https://x/inference"),
        ("https://gateway.example/api", "https://gateway.example/api/v1", "https://gateway.example/api"),
        ("https://gateway.example/api/v1", "https://gateway.example/api/v1", "https://gateway.example/api"),
        ("https://x/av1", "https://x/av1/v1", "https://x/av1"),
        ("https://x/v10", "https://x/v10/v1", "https://x/v10"),
        ("https://x/paas/v4", "https://x/paas/v4", "https://x/paas"),
        ("https://x/v1beta/openai/", "https://x/v1beta/openai", "https://x/v1beta/openai"),
        ("https://x/openai/deployments/d", "https://x/openai/deployments/d", "https://x/openai/deployments/d"),
        (
            "https://x/v1beta1/projects/P/locations/L/endpoints/openapi",
            "https://x/v1beta1/projects/P/locations/L/endpoints/openapi",
            "https://x/v1beta1/projects/P/locations/L/endpoints/openapi",
        ),
    ],
)
def test_every_spelling_gives_one_base_and_metrics_come_from_the_root(given, base, root):
    found = endpoints(given)
    assert (found.base, found.root, found.metrics) == (base, root, f"{root}/metrics")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("https://x/?utm_source=home", "utm_source=home"),
        ("https://x/v1?api-version=1", "api-version=1"),
        ("https://x/v1#keys", "#keys"),
        ("localhost:8000", "http://localhost:8000"),
        ("h/v1", "http://h/v1"),
        ("ftp://h/v1", "http://h/v1"),
        ("http://", "not an http or https URL"),
        ("", "not an http or https URL"),
        ("http://h:port/v1", "Port"),
        ("http://h:99999", "Port"),
        ("http://[::1/v1", "URL"),
    ],
)
def test_what_is_no_api_base_is_refused_by_name(given, named):
    with pytest.raises(ProbeError) as caught:
        endpoints(given)
    assert named in str(caught.value) and caught.value.exit_code == 2


def test_a_password_in_the_url_is_refused_and_not_repeated():
    with pytest.raises(ProbeError) as caught:
        endpoints("https://me:secret@h/v1")
    assert "secret" not in str(caught.value)
