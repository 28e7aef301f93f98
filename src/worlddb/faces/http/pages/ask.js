// Ask: a recall, taken apart: the hits with their reasons, the text that a prompt gets, and why one is not here.
import { html, useRef, useState } from "./vendor/preact-htm.js";
import { clocksOf, contextFor, isSignedIn, post, recall } from "./api.js";
import { AmendDialog } from "./corrections.js";
import { against, Hit, MEANING, replacedBy, sharedBy, weightOf } from "./hit.js";
import {
  change,
  copy,
  count,
  Empty,
  link,
  Loaded,
  textOf,
  useCursor,
  useKeys,
  useLoaded,
  useTyped,
  may,
} from "./parts.js";
import { pin, retire } from "./actions.js";
import { WhyNot } from "./why_not.js";

/** Return the hits, and the texts of those that speak against them. */
async function hitsOf(given, scope, signal) {
  const data = await recall(given, signal);
  const texts = new Map(data.hits.map((hit) => [hit.node.id, textOf(hit.node)]));
  const missing = [...new Set(data.hits.flatMap(against).map((one) => one.id))].filter((id) => id && !texts.has(id));
  if (missing.length) {
    const query = { seeds: missing, include_superseded: true };
    const found = await post("/v1/query", { query, ...scope }, signal).catch(() => ({ nodes: [] }));
    for (const node of found.nodes) texts.set(node.id, textOf(node));
  }
  return { ...data, texts };
}

function moveOf(hit, place, other) {
  if (!other) return null;
  const was = other.hits.findIndex((one) => one.node.id === hit.node.id);
  if (was < 0) return { kind: "good", text: "only here" };
  return was === place ? null : { kind: "", text: `${was > place ? "▲" : "▼"} ${Math.abs(was - place)}` };
}

const UNLIKELY = 0.3; // Below it, a recall is more often wrong than right.

/** How sure the recall is, in one sentence. */
function Verdict({ data }) {
  const { confidence, hits } = data;
  const size = html` <span class="small soft">${count(hits.length, "hit")}, ${count(
    hits.reduce((sum, hit) => sum + hit.tokens, 0),
    "token",
  )}</span>`;
  if (confidence === undefined || confidence === null) return html`<p class="verdict">${size}</p>`;
  const sure = html`<strong>${(100 * confidence).toFixed(0)} %</strong> sure that the answer is here.`;
  return html`<p class="verdict">${confidence < UNLIKELY ? html`Probably not remembered: ${sure}` : sure}${size}</p>`;
}

function PartsOfScore({ hits }) {
  const names = [...new Set(hits.flatMap((hit) => Object.keys(hit.weighed || {})))].filter((name) => MEANING[name]);
  return html`<details class="small"><summary>What the parts of a score mean</summary>
    <dl>${names.map((name) => html`<dt>${name}</dt><dd>${MEANING[name]}</dd>`)}</dl></details>`;
}

const PARTS = [["Prompt", "What a prompt gets"], ["Why not", "Why is one not here?"], ["Code", "As code"]];
const showPart = (label) => document.querySelector(`aside section[aria-label="${label}"]`).scrollIntoView({ block: "start" });

/** The way to what stands below the hits, where there is no room for it beside them. */
const Below = () => html`<div class="bar small below">${PARTS.map(([label, title]) => html`<button key=${label} class="link" onClick=${() => showPart(label)}>${title} ↓</button>`)}</div>`;

function Answer({ found, other, title, at, jump, onAmend }) {
  return html`<section aria-label=${title}>
    <${Loaded} of=${found}>${(data) => {
      if (!data.hits.length)
        return html`<${Empty} title="Nothing is remembered about this">An agent would be told to say so. Try other words, another scope or another time, or <a href=${link("memories")}>write it down</a>.</${Empty}>`;
      const most = Math.max(...[...data.hits, ...(other ? other.hits : [])].map(weightOf));
      const shared = sharedBy(data.hits);
      return html`<${Verdict} data=${data} />${jump}
        ${data.hits.map(
          (hit, place) =>
            html`<${Hit} key=${hit.node.id} hit=${hit} rank=${place + 1} texts=${data.texts} most=${most} shared=${shared} current=${place === at}
              replaces=${replacedBy(hit.node.id, data.hits)} moved=${moveOf(hit, place, other)} onAmend=${onAmend} />`,
        )}
        <${PartsOfScore} hits=${data.hits} />`;
    }}</${Loaded}>
  </section>`;
}

/** The very text that an agent's prompt gets, within a budget. */
function PromptText({ query, scope, params, stamp }) {
  const most = Number(params.most || 500);
  const page = useLoaded(
    (signal) => contextFor({ query, max_tokens: most, ...scope, ...clocksOf(params) }, signal),
    [query, most, params.scope, params.as_of, params.known_at, stamp],
  );
  const setMost = (event) => change({ most: event.target.value });
  return html`<section aria-label="Prompt"><h2>What a prompt gets</h2>
    <div class="bar small"><label>At most <input type="number" name="most" min="20" max="20000" value=${most} onChange=${setMost} /> tokens</label>
      <button disabled=${!page.data || !page.data.text} onClick=${() => copy(page.data.text)}>Copy the text</button></div>
    <${Loaded} of=${page}>${(data) =>
      data.text
        ? html`<p class="small soft">${count(data.tokens, "token")}, ${data.ids.length === 1 ? "1 memory" : `${data.ids.length} memories`}, ${data.left_out} left out</p>
          <pre class="small" tabindex="0">${data.text}</pre>`
        : html`<p class="soft">Nothing is remembered that fits.</p>`}</${Loaded}></section>`;
}

const asPython = (value) => (value === true ? "True" : value === false ? "False" : JSON.stringify(value));

export function asCode(kind, { query, ...rest }, hits) {
  const given = Object.entries(rest).filter(([, value]) => value !== undefined && value !== "");
  const python = given.map(([name, value]) => `, ${name}=${asPython(value)}`).join("");
  const call = `memory.recall(${JSON.stringify(query)}${python})`;
  const token = isSignedIn() ? ', token=os.environ["WORLDDB_TOKEN"]' : "";
  const head = `${token && "import os\n\n"}from worlddb import Client\n`;
  const open = `with Client("${location.origin}"${token}) as memory:`;
  const header = isSignedIn() ? '-H "Authorization: Bearer $WORLDDB_TOKEN" ' : ""; // Its name: code that is copied goes anywhere.
  if (kind === "curl")
    return `curl ${header}-H 'content-type: application/json' ${location.origin}/v1/recall -d '${JSON.stringify({ query, ...Object.fromEntries(given) }).replaceAll("'", "'\\''")}'`;
  if (kind === "test")
    return `${head}\n\ndef test_recall():\n    ${open}\n        found = [hit.node.content for hit in ${call}]\n    assert found[:1] == ${JSON.stringify(hits.slice(0, 1).map((hit) => hit.node.content))}\n`;
  return `${head}\n${open}\n    for hit in ${call}:\n        print(hit.node.content)\n`;
}

const FIELDS = ["k", "tokens", "sure", "type", "at", "known", "ended", "sums"];
const TYPES = ["Memory", "Session", "Turn", "Fact", "Entity"];

function Options({ name, params, title }) {
  const key = (part) => `${name}${part}`;
  const field = (part, label, more) =>
    html`<label>${label} <input name=${key(part)} value=${params[key(part)] || ""} ...${more}
      onChange=${(event) => change({ [key(part)]: event.target.value })} /></label>`;
  const box = (part, label) =>
    html`<label class="box"><input type="checkbox" name=${key(part)} checked=${Boolean(params[key(part)])}
      onChange=${(event) => change({ [key(part)]: event.target.checked ? "1" : "" })} /> ${label}</label>`;
  return html`<div class="small" role="group" aria-label=${title}>${params.two && html`<strong>${title}</strong>`}<div class="bar options">
    ${field("k", "Hits", { type: "number", min: 1, max: 1000, placeholder: "10" })}
    ${field("tokens", "Tokens at most", { type: "number", min: 1, placeholder: "no limit" })}
    ${field("sure", "Least confidence", { type: "number", min: 0, max: 1, step: 0.05, placeholder: "any" })}
    ${field("type", "Type", { list: "recall-types", size: 8, placeholder: "all" })}
    ${name === "b" && html`${field("at", "True when", { type: "date" })} ${field("known", "Known when", { type: "date" })}`}
    ${box("ended", "Also ended ones")} ${box("sums", "Summaries first")}
  </div></div>`;
}

/** The settings of the question, open where one is set; two of them side by side on demand. */
function Settings({ params }) {
  const used = ["a", "b"].flatMap((name) => FIELDS.filter((part) => params[name + part]));
  const setTwo = (event) => change({ two: event.target.checked ? "1" : "" });
  return html`<details class="settings" open=${used.length > 0 || Boolean(params.two)}><summary>Settings</summary>
    <div class=${params.two ? "pair" : ""}><${Options} name="a" params=${params} title=${params.two ? "First settings" : "Settings"} />
      ${params.two && html`<${Options} name="b" params=${params} title="Second settings" />`}</div>
    <label class="small box"><input type="checkbox" name="two" checked=${Boolean(params.two)} onChange=${setTwo} /> Compare two settings side by side</label>
    <datalist id="recall-types">${TYPES.map((one) => html`<option value=${one}></option>`)}</datalist></details>`;
}

/** Return the arguments of the recall that the parameters of one side mean. */
function givenBy(name, params, scope) {
  const value = (part) => params[`${name}${part}`];
  const clocks = clocksOf(params);
  if (name === "b" && value("at")) clocks.as_of = `${value("at")}T23:59:59Z`;
  if (name === "b" && value("known")) clocks.known_at = `${value("known")}T23:59:59Z`;
  return {
    query: params.q,
    k: Number(value("k") || 10),
    max_tokens: value("tokens") ? Number(value("tokens")) : undefined,
    min_confidence: value("sure") ? Number(value("sure")) : undefined,
    types: value("type") ? [value("type")] : undefined,
    include_retired: value("ended") ? true : undefined,
    summaries: value("sums") ? "first" : undefined,
    ...scope,
    ...clocks,
  };
}

function CopyAs({ given, hits }) {
  const button = (kind) =>
    html`<button aria-label=${`Copy as ${kind}`} disabled=${!hits} onClick=${() => copy(asCode(kind.toLowerCase(), given, hits))}>${kind}</button>`;
  return html`<section aria-label="Code"><h2>This question as code</h2>
    <div class="bar small copies">${["Python", "curl", "test"].map(button)}</div></section>`;
}

function Answers({ params, scope, stamp }) {
  const [amended, setAmended] = useState(null);
  const left = givenBy("a", params, scope);
  const right = givenBy("b", params, scope);
  const first = useLoaded((signal) => hitsOf(left, scope, signal), [JSON.stringify(left), stamp]);
  const second = useLoaded(
    (signal) => (params.two ? hitsOf(right, scope, signal) : Promise.resolve(null)),
    [params.two, JSON.stringify(right), stamp],
  );
  const both = params.two && first.data && second.data;
  const hits = first.data ? first.data.hits : [];
  const { at, keys } = useCursor(
    hits.map((hit) => hit.node.id),
    [JSON.stringify(left)],
  );
  const chosen = hits[at] && hits[at].node;
  useKeys(
    {
      ...keys,
      e: chosen && may("write") && (() => setAmended(chosen)),
      p: chosen && may("curate") && (() => pin([chosen])),
      r: chosen && may("curate") && (() => retire([chosen])),
    },
    [first.data, at],
  );
  const onAmend = setAmended;
  return html`<div class=${params.two ? "" : "answers"}>
      <div class=${params.two ? "pair" : ""}>
        <${Answer} title="Hits" found=${first} other=${both && second.data} at=${at} jump=${html`<${Below} />`} onAmend=${onAmend} />
        ${params.two && html`<${Answer} title="Hits with the second settings" found=${second} other=${both && first.data} onAmend=${onAmend} />`}
      </div>
      <aside aria-label="About this question">
        <${PromptText} query=${params.q} scope=${scope} params=${params} stamp=${stamp} />
        <${WhyNot} given=${left} scope=${scope} />
        <${CopyAs} given=${left} hits=${first.data && hits} />
      </aside>
    </div>
    ${amended && html`<${AmendDialog} memory=${amended} onDone=${() => setAmended(null)} onClose=${() => setAmended(null)} />`}`;
}

const EXAMPLES = ["Where do I live now?", "What changed lately?", "Who do I work with?"];

export function Ask({ where, scope, stamp }) {
  const { params } = where;
  const [query, setQuery, send] = useTyped("q", params.q || "");
  const box = useRef();
  useKeys({ "/": () => box.current.focus() }, []);
  const ask = (event) => {
    event.preventDefault();
    send();
  };
  return html`<h1>Ask</h1>
    <p class="soft">What an agent gets for a question, and why.</p>
    <form class="bar" onSubmit=${ask}>
      <input class="grow" type="search" name="q" ref=${box} aria-label="Question" placeholder="Where do I live now?  ( / )" required
        value=${query} onInput=${(event) => setQuery(event.target.value)} /><button class="main">Ask</button></form>
    <${Settings} params=${params} />
    ${
      params.q
        ? html`<${Answers} params=${params} scope=${scope} stamp=${stamp} />`
        : html`<${Empty} title="Ask as an agent would">Each hit says why it is there, and can be put right at once. For example:
            <div class="bar center">${EXAMPLES.map((one) => html`<button key=${one} onClick=${() => change({ q: one })}>${one}</button>`)}</div></${Empty}>`
    }`;
}
