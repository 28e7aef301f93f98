"""Metrics: the text that Prometheus reads, and that it is true."""

from __future__ import annotations

import re

from worlddb.faces.http.server_metrics import HELP
from worlddb.memory.memory import Memory

from .serving import Site, serving

LINE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="[^"\\\n]*",?)+\})? ([0-9.]+)')


def sampled(site: Site) -> dict[str, float]:
    answer = site.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, float] = {}
    for line in answer.body.decode().splitlines():
        if line.startswith("#"):
            continue
        read = LINE.fullmatch(line)
        assert read is not None, line
        name = read[1] + (read[2] or "")
        assert name not in found
        found[name] = float(read[3])
    return found


def test_every_metric_says_what_it_is_before_its_values(site: Site) -> None:
    text = site.get("/metrics").body.decode()
    assert re.findall("# TYPE ([a-z_]+) ", text) == re.findall("# HELP ([a-z_]+) ", text)
    of_tenants = {"worlddb_stores_open"}  # Only with `--stores`: see test_tenants.
    assert set(re.findall("# TYPE ([a-z_]+) ", text)) == set(HELP) - of_tenants
    assert text.endswith("\n")


def test_what_is_done_is_counted_over_rest_and_mcp(memory: Memory) -> None:
    with serving(memory) as site:
        before = sampled(site)
        made = site.post("/v1/memories", text="counted once", user_id="meter").data
        site.post("/v1/memories", text="counted once", user_id="meter")
        site.tool("memory_write", text="counted, too", user_id="meter")
        site.post(f"/v1/memories/{made['id']}/retire")
        site.get("/v1/memories/abc")
        site.send("BREW", "/coffee")
        after = sampled(site)
    assert before["worlddb_memories_written_total"] == 0
    assert after["worlddb_memories_written_total"] == 2
    assert after["worlddb_memories_retired_total"] == 1
    commits = after["worlddb_store_commits"] - before["worlddb_store_commits"]
    assert commits == memory.db.log(limit=1, newest_first=True)[0].seq - commits_of(before)
    assert after["worlddb_store_bytes"] > 10_000
    requests = {name: value for name, value in after.items() if "requests_total" in name}
    assert requests == {
        request("/v1/memories", "POST", 200): 2,
        request("/v1/memories/{id}/retire", "POST", 200): 1,
        request("/v1/memories/{id}", "GET", 400): 1,
        request("/mcp", "POST", 200): 1,
        request("/metrics", "GET", 200): 1,
        request("(none)", "other", 404): 1,
    }


def commits_of(found: dict[str, float]) -> float:
    return found["worlddb_store_commits"]


def request(route: str, method: str, status: int) -> str:
    labels = f'route="{route}",method="{method}",status="{status}"'
    return f"worlddb_http_requests_total{{{labels}}}"


def test_the_buckets_of_a_histogram_add_up(site: Site) -> None:
    for _ in range(3):
        site.get("/health")
    found = sampled(site)
    start = 'worlddb_http_request_seconds_bucket{route="/health",method="GET",le='
    buckets = [value for name, value in found.items() if name.startswith(start)]
    labels = '{route="/health",method="GET"}'
    assert buckets == sorted(buckets)
    assert buckets[-1] == found[f"worlddb_http_request_seconds_count{labels}"] >= 3
    assert found[f"worlddb_http_request_seconds_sum{labels}"] > 0


def test_written_and_retired_are_counted_by_one_measure(memory: Memory) -> None:
    chat = [{"role": "user", "content": f"My friend number {n} is Anna Berg"} for n in range(5)]
    with serving(memory) as site:
        one = site.post("/v1/memories", messages=chat, user_id="measure").data["id"]
        site.post("/v1/memories", text="Bob Stone lives in Rome", user_id="measure")
        site.post(f"/v1/memories/{one}/retire")
        site.post("/v1/retire_all", user_id="measure", confirm="measure")
        found = sampled(site)
    assert found["worlddb_memories_written_total"] == 2
    assert found["worlddb_memories_retired_total"] == 2
