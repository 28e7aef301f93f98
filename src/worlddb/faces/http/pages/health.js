// Health: the size of the store, how fast it answers, and whether it is sound.
import { html, useState } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { attempt, Empty, Loaded, useLoaded } from "./parts.js";

/** Read the text format of Prometheus: name, labels, value. */
function readMetrics(text) {
  return text.split("\n").map((line) => line.match(/^(\w+)(?:\{(.*)\})? (\S+)$/)).filter(Boolean).map(([, name, labels, value]) => ({
    name,
    labels: Object.fromEntries([...(labels || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, held]) => [key, held])),
    value: value === "+Inf" ? Infinity : Number(value),
  }));
}

/** Return the bound below which a share of the requests of a route were answered. */
function percentile(buckets, share) {
  const all = buckets.length ? buckets[buckets.length - 1].value : 0;
  const found = buckets.find((one) => one.value >= share * all);
  return all && found ? found.labels.le : "";
}

function routes(metrics) {
  const found = new Map();
  for (const one of metrics.filter((item) => item.name === "worlddb_http_request_seconds_bucket")) {
    const key = `${one.labels.method} ${one.labels.route}`;
    found.set(key, [...(found.get(key) || []), one]);
  }
  return [...found.entries()].map(([route, buckets]) => ({ route, count: buckets[buckets.length - 1].value, p50: percentile(buckets, 0.5), p95: percentile(buckets, 0.95) })).filter((one) => one.count).sort((a, b) => b.count - a.count);
}

const size = (bytes) => (bytes > 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.round(bytes / 1e3)} kB`);
const limit = (text) => (text === "+Inf" ? "> 10 s" : text ? `≤ ${Number(text) < 1 ? `${Math.round(Number(text) * 1000)} ms` : `${text} s`}` : "–");

function Check() {
  const [state, setState] = useState(null);
  const run = async () => {
    setState("running");
    setState((await attempt(() => get("/v1/check"))) || null);
  };
  return html`<h2>Check</h2><p>Reads the whole store and compares every text, edge, hash and index with the journal.</p>
    <div class="bar"><button onClick=${run} disabled=${state === "running"}>${state === "running" ? "Checking …" : "Check the store"}</button></div>
    ${state && state !== "running" && (state.sound ? html`<p role="status"><span class="chip good">sound</span> commit ${state.commit}, root state <span class="mono">${state.root_state}</span></p>`
      : html`<div class="problem" role="alert">${state.problems.map((one) => html`<div>${one.message || JSON.stringify(one)}</div>`)}</div>`)}`;
}

export function Health({ access, stamp }) {
  const page = useLoaded(async (signal) => {
    const [health, metrics] = await Promise.all([get("/health", {}, signal), access.admin ? get("/metrics", {}, signal) : ""]);
    return { health, metrics: readMetrics(metrics) };
  }, [stamp]);
  return html`<h1>Health</h1><${Loaded} of=${page}>${({ health, metrics }) => {
    const value = (name) => (metrics.find((one) => one.name === name) || { value: 0 }).value;
    return html`<div class="columns">
        <div class="card"><div class="soft">server</div><div class="figure">${health.status}</div><div class="small soft">version ${health.version}</div></div>
        ${access.admin && html`<div class="card"><div class="soft">store</div><div class="figure">${size(value("worlddb_store_bytes"))}</div></div>
        <div class="card"><div class="soft">commits</div><div class="figure">${value("worlddb_store_commits").toLocaleString("en")}</div></div>
        <div class="card"><div class="soft">written since the start</div><div class="figure">${value("worlddb_memories_written_total").toLocaleString("en")}</div></div>`}
      </div>
      ${!access.admin ? html`<${Empty} title="More needs an admin token">Sizes, times and the check are for whoever runs the server.</${Empty}>` : html`
        <h2>Time to answer</h2><div class="scroll"><table><thead><tr><th>route</th><th class="tight">requests</th><th class="tight">half are</th><th class="tight">95 % are</th></tr></thead><tbody>
          ${routes(metrics).map((one) => html`<tr key=${one.route}><td class="mono">${one.route}</td><td class="tight">${one.count}</td><td class="tight">${limit(one.p50)}</td><td class="tight">${limit(one.p95)}</td></tr>`)}</tbody></table></div>
        <${Check} />`}`;
  }}</${Loaded}>`;
}
