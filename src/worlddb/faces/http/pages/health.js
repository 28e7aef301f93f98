// Health: the size of the store, how it grows, how fast it answers, what works in the background, and whether it is sound.
import { html, useState } from "./vendor/preact-htm.js";
import { get, lines } from "./api.js";
import { attempt, Chip, count, Empty, link, Loaded, useLoaded } from "./parts.js";
import { beginning, Growth } from "./journal.js";

/** Read the text format of Prometheus: name, labels, value. */
function readMetrics(text) {
  return text
    .split("\n")
    .map((line) => line.match(/^(\w+)(?:\{(.*)\})? (\S+)$/))
    .filter(Boolean)
    .map(([, name, labels, value]) => ({
      name,
      labels: Object.fromEntries(
        [...(labels || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, held]) => [key, held]),
      ),
      value: value === "+Inf" ? Infinity : Number(value),
    }));
}

/** Return the seconds within which a share of requests was answered: a line between the bounds of their bucket. */
export function percentile(buckets, share) {
  const bounds = buckets.map((one) => ({
    upTo: one.labels.le === "+Inf" ? Infinity : Number(one.labels.le),
    seen: one.value,
  }));
  const all = bounds.length ? bounds[bounds.length - 1].seen : 0;
  const place = bounds.findIndex((one) => one.seen >= share * all);
  if (!all || place < 0) return null;
  const [low, before] = place ? [bounds[place - 1].upTo, bounds[place - 1].seen] : [0, 0];
  if (bounds[place].upTo === Infinity) return Infinity;
  return low + ((bounds[place].upTo - low) * (share * all - before)) / Math.max(1, bounds[place].seen - before);
}

function routes(metrics) {
  const found = new Map();
  // The files of these pages say nothing about the store.
  const isCall = ({ name, labels }) => name === "worlddb_http_request_seconds_bucket" && labels.route !== "/" && !labels.route.startsWith("/ui/");
  for (const one of metrics.filter(isCall)) {
    const key = `${one.labels.method} ${one.labels.route}`;
    found.set(key, [...(found.get(key) || []), one]);
  }
  return [...found.entries()]
    .map(([route, buckets]) => ({
      route,
      count: buckets[buckets.length - 1].value,
      times: [0.5, 0.95, 0.99].map((share) => percentile(buckets, share)),
    }))
    .filter((one) => one.count)
    .sort((a, b) => b.count - a.count);
}

const size = (bytes) =>
  bytes > 1e9
    ? `${(bytes / 1e9).toFixed(2)} GB`
    : bytes > 1e6
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${Math.round(bytes / 1e3)} kB`;
const took = (seconds) =>
  seconds === null
    ? "–"
    : seconds === Infinity
      ? "> 30 s"
      : seconds < 1
        ? `${seconds < 0.01 ? (1000 * seconds).toFixed(1) : Math.round(1000 * seconds)} ms`
        : `${seconds.toFixed(1)} s`;
const VERDICTS = { ok: "good", warn: "warn", fail: "bad" };

/** What `worlddb doctor` says of the store, its indexes, the embedder and the work in the background. */
function Doctor({ stamp }) {
  const page = useLoaded((signal) => get("/v1/doctor", {}, signal), [stamp]);
  return html`<h2>Doctor</h2><p class="soft">The parts of the store, and what to do if one of them is not well. <code>worlddb doctor</code> says the same.</p><${Loaded} of=${page}>${({
    findings,
  }) => html`<div class="scroll"><table class="doctor"><thead><tr><th class="tight">part</th><th class="tight">verdict</th><th>what was seen</th></tr></thead><tbody>
    ${findings.map((one) => html`<tr key=${one.part + one.seen}><td class="tight">${one.part}</td><td class="tight"><${Chip} kind=${VERDICTS[one.verdict]}>${one.verdict}</${Chip}></td><td class="text">${one.seen}${one.advice && html`<div class="small soft">${one.advice}</div>`}</td></tr>`)}</tbody></table></div>
    <div class="bar"><button onClick=${page.again}>Examine again</button></div>`}</${Loaded}>`;
}

function Check() {
  const [state, setState] = useState(null);
  const run = async () => {
    setState({ done: 0, total: 1, stage: "file" });
    setState((await attempt(() => lines("/v1/check", setState))) || null);
  };
  const isRunning = state && state.stage;
  return html`<h2>Check</h2><p>Reads the whole store and compares every text, edge, hash and index with the journal.</p>
    <div class="bar"><button onClick=${run} disabled=${isRunning}>${isRunning ? "Checking …" : "Check the store"}</button></div>
    ${isRunning && html`<div role="status"><progress max=${state.total} value=${state.done} aria-label="Check"></progress><p class="small soft">${state.done} of ${state.total}: ${state.stage}</p></div>`}
    ${
      state &&
      !isRunning &&
      (state.sound
        ? html`<p role="status"><span class="chip good">sound</span> commit ${state.commit}, root state <span class="mono">${state.root_state}</span></p>`
        : html`<div class="problem" role="alert">${state.problems.map((one) => html`<div>${one.place}: ${one.message}</div>`)}</div>`)
    }`;
}

function Figure({ title, value, note }) {
  return html`<div class="card"><div class="soft">${title}</div><div class="figure">${value}</div><div class="small soft">${note}</div></div>`;
}

export function Health({ access, stamp }) {
  const page = useLoaded(
    async (signal) => {
      const [health, metrics, from, scopes] = await Promise.all([
        get("/health", {}, signal),
        access.admin ? get("/metrics", {}, signal).catch(() => "") : "",
        access.admin ? beginning("", signal).catch(() => null) : null,
        get("/v1/scopes", { limit: 1000 }, signal).catch(() => ({ scopes: [] })),
      ]);
      return { health, metrics: readMetrics(metrics), from, scopes: scopes.scopes };
    },
    [stamp],
  );
  return html`<h1>Health</h1><${Loaded} of=${page}>${({ health, metrics, from, scopes }) => {
    const value = (name) => (metrics.find((one) => one.name === name) || { value: 0 }).value;
    return html`<div class="columns figures">
        <${Figure} title="Server" value=${health.status} note=${`version ${health.version}`} />
        ${
          access.admin &&
          html`<${Figure} title="Store" value=${size(value("worlddb_store_bytes"))} note=${count(value("worlddb_store_commits"), "commit")} />
        <${Figure} title="Written since the start" value=${value("worlddb_memories_written_total").toLocaleString("en")} note=${`${value("worlddb_memories_retired_total").toLocaleString("en")} ended`} />
        <${Figure} title="Scopes" value=${scopes.length >= 1000 ? "1,000 or more" : scopes.length} note=${access.manages_tokens ? html`<a href=${link("tokens")}>tokens that open them</a>` : html`<a href=${link("worlds")}>what is in them</a>`} />`
        }
      </div>
      ${
        !access.admin
          ? html`<${Empty} title="More needs an admin token">Sizes, times and the check are for whoever runs the server.</${Empty}>`
          : html`
        <h2>Growth</h2><${Growth} scope=${{}} from=${from} stamp=${stamp} />
        <${Doctor} stamp=${stamp} />
        <${Check} />
        <h2>Time to answer</h2><p class="soft">Half of the requests since the start were answered within P50, 95 of 100 within P95, 99 within P99.</p><div class="scroll"><table><thead><tr><th>route</th><th class="tight wide">requests</th><th class="tight">P50</th><th class="tight">P95</th><th class="tight">P99</th></tr></thead><tbody>
          ${routes(metrics).map((one) => html`<tr key=${one.route}><td class="mono">${one.route}</td><td class="tight wide">${one.count.toLocaleString("en")}</td>${one.times.map((time) => html`<td class="tight">${took(time)}</td>`)}</tr>`)}</tbody></table></div>`
      }`;
  }}</${Loaded}>`;
}
