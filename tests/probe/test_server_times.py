import pytest

from prefixkit.probe import Client
from prefixkit.probe.server_times import between, probe_alone
from tests.fakes.wire import GOOD, WireServer, answer
from tests.probe.conftest import QUESTION


def page(count, queue_s=0.0, prefill_s=0.0, frontend_s=0.0):
    sums = {"request_queue_time": queue_s, "request_prefill_time": prefill_s, "time_to_first_token": frontend_s}
    lines = []
    for name, total in sums.items():
        series = f"vllm:{name}_seconds"
        lines.append(f"# TYPE {series} histogram")
        lines += [f'{series}_bucket{{engine="0",le="+Inf"}} {count}', f'{series}_sum{{engine="0"}} {total}']
        lines.append(f'{series}_count{{engine="0"}} {count}')
    return "\n".join(lines) + "\n"


def test_differences_of_sums_are_the_times_of_one_request():
    times = between([page(4, 1.0, 2.0, 3.0)], [page(5, 1.25, 2.5, 4.0)])
    assert times == {"queue_ms": 250.0, "ttft_ms": 500.0, "frontend_ttft_ms": 1000.0}


@pytest.mark.parametrize("after", [page(4), page(6), "vllm:other 1\n"])
def test_anything_but_exactly_one_request_gives_no_times(after):
    assert between([page(4)], [after]) is None


def served(pages):
    """Answer /metrics with `pages` in turn, the last one again and again."""
    scripts = [answer(200, p.encode(), "text/plain; version=0.0.4") for p in pages]
    with WireServer(*scripts, by_path={"/v1/chat/completions": GOOD}) as server, Client(server.url, "m") as client:
        return probe_alone(client, [client.endpoints.metrics], QUESTION, max_tokens=1)


def test_a_request_alone_gets_the_servers_times_even_if_the_counters_come_late():
    probe = served([page(4), page(4), page(5, prefill_s=0.5)])
    assert probe.server == {"queue_ms": 0.0, "ttft_ms": 500.0, "frontend_ttft_ms": 0.0}


def test_a_server_without_metrics_still_gives_its_probe():
    probe = served(["<html>"])
    assert probe.error is None and probe.server is None


def test_somebody_elses_request_makes_the_times_unknown():
    assert served([page(4), page(7)]).server is None
