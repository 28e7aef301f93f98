// The shell: who is signed in, whose memory is shown, at which of the two times, and which page.
import { html, render, useEffect, useLayoutEffect, useState } from "./vendor/preact-htm.js";
import { get, scopeOf, signIn } from "./api.js";
import { change, copy, day, Dialog, FIRST_PAGE, isTyping, link, Notices, place, Problem } from "./parts.js";
import { Ask } from "./ask.js";
import { Branches } from "./branches.js";
import { Health } from "./health.js";
import { Inbox } from "./inbox.js";
import { Journal } from "./journal.js";
import { Memories } from "./memories.js";
import { OneMemory } from "./memory.js";
import { People } from "./people.js";
import { ProofPage } from "./proof.js";
import { Tokens } from "./tokens.js";
import { Worlds } from "./worlds.js";

const PAGES = {
  memories: ["Memories", Memories],
  ask: ["Ask", Ask],
  inbox: ["Inbox", Inbox],
  people: ["People and names", People],
  worlds: ["Worlds", Worlds],
  journal: ["Journal", Journal],
  branches: ["Branches", Branches, (access) => access.admin],
  health: ["Health", Health],
  tokens: ["Tokens", Tokens, (access) => access.manages_tokens],
  proof: ["Verify a proof", ProofPage],
};
const HIDDEN = { memory: ["Memory", OneMemory] };
const DAY_MS = 86400000;

function SignIn({ error, onDone }) {
  const [value, setValue] = useState("");
  const send = (event) => {
    event.preventDefault();
    signIn(value.trim());
    onDone();
  };
  return html`<main class="sign"><h1>WorldDB</h1>
    <p>This server asks for a token. The page keeps the token until it is closed or loaded again, and nowhere else.</p>
    <form onSubmit=${send}>
      <label>Token <input type="password" name="token" autocomplete="off" required value=${value} onInput=${(event) => setValue(event.target.value)} /></label>
      <div class="bar"><button class="main">Sign in</button></div>
    </form>
    ${error && error.status !== 401 && html`<${Problem} error=${error} />`}
    ${error && error.status === 401 && error.tried && html`<p class="problem" role="alert">This token is not valid here, or has expired.</p>`}
  </main>`;
}

/** One of the two clocks: a slider over days, a field for the exact time, and the way back to now. */
function Clock({ name, label, help, first, params }) {
  const days = Math.max(1, Math.ceil((Date.now() - first) / DAY_MS));
  const [moved, setMoved] = useState(null);
  const [exact, setExact] = useState(false);
  const given = params[name];
  const at = moved !== null ? moved : given ? Math.round((new Date(given) - first) / DAY_MS) : days;
  const shown = at >= days ? "now" : day(new Date(first + at * DAY_MS));
  const set = (event) => {
    const value = Number(event.target.value);
    setMoved(null);
    change({ [name]: value >= days ? "" : `${day(new Date(first + value * DAY_MS))}T23:59:59Z`, ...FIRST_PAGE });
  };
  const type = (event) => {
    setExact(false);
    change({ [name]: event.target.value ? `${event.target.value.slice(0, 16)}:59Z` : "", ...FIRST_PAGE });
  };
  return html`<div class="clock" title=${help}>
    <label>${label} <input type="range" name=${name} min="0" max=${days} value=${at} aria-valuetext=${shown}
      onInput=${(event) => setMoved(Number(event.target.value))} onChange=${set} /></label>
    ${exact ? html`<input type="datetime-local" aria-label=${`${label}, the exact time in UTC`} value=${given ? given.slice(0, 16) : ""} onChange=${type} />`
      : html`<button class="link time" title="Give the exact time" aria-label=${`${label}: ${given && moved === null ? given : shown}; give the exact time`} onClick=${() => setExact(true)}>${given && moved === null ? day(given) : shown}</button>`}
    ${given && html`<button class="link" aria-label=${`${label}: now`} onClick=${() => change({ [name]: "", ...FIRST_PAGE })}>now</button>`}
  </div>`;
}

const KEYS = [
  ["everywhere", { "?": "this list", u: "undo what was done last", "g m / g a / g i": "go to Memories, Ask, Inbox (also p people, w worlds, j journal, h health)" }],
  ["Memories", { "/": "search", "j k": "next, previous row", x: "choose the row", e: "amend it", p: "pin it, or unpin it", r: "retire it, or all that are chosen", a: "add", "n b": "next page, page before", Enter: "open the row" }],
  ["Inbox", { "j k": "next, previous card", "a r 1 2 b p": "what the buttons of the card say" }],
];
const GOES = { m: "memories", a: "ask", i: "inbox", p: "people", w: "worlds", j: "journal", h: "health" };

function Help({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>${KEYS.map(([title, keys]) => html`<h3>${title}</h3><dl>${Object.entries(keys).map(([key, told]) => html`<dt><kbd>${key}</kbd></dt><dd>${told}</dd>`)}</dl>`)}
    <div class="bar"><button class="main" onClick=${onClose}>Close</button></div></${Dialog}>`;
}

/** The keys that hold on every page: help, and `g` with a letter for a page. */
function useShellKeys(setHelp) {
  useLayoutEffect(() => {
    let isGoing = false; // No state of the page: the letter may be typed before the page is drawn again.
    const press = (event) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key === "?") setHelp(true);
      const page = isGoing && GOES[event.key];
      if (page) {
        event.stopImmediatePropagation();
        event.preventDefault();
        location.hash = link(page);
      }
      isGoing = event.key === "g";
    };
    addEventListener("keydown", press, true); // Before the page, whose keys have other meanings.
    return () => removeEventListener("keydown", press, true);
  }, []);
}

function Scopes({ scopes, params, bounds }) {
  const names = scopes.map((one) => one.name);
  if (params.scope && !names.includes(params.scope)) names.unshift(params.scope);
  return html`<label>Memory of <select name="scope" value=${params.scope || ""} onChange=${(event) => change({ scope: event.target.value, ...FIRST_PAGE })}>
    ${Object.keys(bounds).length === 0 && html`<option value="">the default user</option>`}
    ${names.map((name) => html`<option value=${name}>${name.replace(":", " ")}</option>`)}
  </select></label>`;
}

function Theme() {
  const [theme, setTheme] = useState("");
  useEffect(() => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }, [theme]);
  return html`<label class="small">Colours <select value=${theme} onChange=${(event) => setTheme(event.target.value)}>
    <option value="">of the system</option><option value="light">light</option><option value="dark">dark</option></select></label>`;
}

function App() {
  const [where, setWhere] = useState(place());
  const [access, setAccess] = useState(null);
  const [error, setError] = useState(null);
  const [scopes, setScopes] = useState([]);
  const [first, setFirst] = useState(Date.now() - 30 * DAY_MS);
  const [turn, setTurn] = useState(0);
  const [help, setHelp] = useState(false);
  useShellKeys(setHelp);

  useEffect(() => {
    const follow = () => setWhere(place());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    get("/v1/access").then(
      (told) => {
        setError(null);
        setAccess(told);
      },
      (failed) => {
        failed.tried = turn > 0;
        setError(failed);
      },
    );
  }, [turn]);
  const [stamp, setStamp] = useState(0);
  useEffect(() => {
    const again = () => setStamp((old) => old + 1);
    addEventListener("worlddb:changed", again);
    return () => removeEventListener("worlddb:changed", again);
  }, []);
  useEffect(() => {
    if (!access) return;
    get("/v1/scopes", { limit: 1000 }).then((found) => {
      setScopes(found.scopes);
      // A memory is often older than the store: the clocks begin where its oldest scope does, and a year before.
      const born = found.scopes.map((one) => Date.parse(one.known_from)).filter(Number.isFinite);
      setFirst(Math.min(Date.now(), ...born) - 366 * DAY_MS);
      if (!place().params.scope && found.scopes.length) change({ scope: found.scopes[0].name });
    }, () => {});
  }, [access, stamp]);
  useEffect(() => {
    const [title] = PAGES[where.page] || HIDDEN[where.page] || PAGES.memories;
    document.title = `${title} · WorldDB`;
  }, [where.page]);

  if (!access) return error ? html`<${SignIn} error=${error} onDone=${() => setTurn((old) => old + 1)} />` : html`<p class="loading">Loading …</p>`;
  const { params } = where;
  const [, Page] = PAGES[where.page] || HIDDEN[where.page] || PAGES.memories;
  const then = params.as_of || params.known_at;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to the page</a>
  <div class="shell">
    <nav class="side" aria-label="Pages">
      <a class="brand" href=${link("memories")}><img src="/ui/icon.svg" alt="" />WorldDB</a>
      ${Object.entries(PAGES).filter(([, [, , isFor]]) => !isFor || isFor(access)).map(([page, [title]]) => html`<a class="item" href=${link(page)} aria-current=${page === where.page ? "page" : undefined}>${title}</a>`)}
      <div class="foot small soft">${access.token ? html`${access.token}${access.read_only ? " (reads only)" : ""}<br />` : null}<${Theme} /><br /><button class="link" onClick=${() => setHelp(true)}>Keys (?)</button><br />version ${access.version}</div>
    </nav>
    <div>
      <header class="top">
        <${Scopes} scopes=${scopes} params=${params} bounds=${access.bounds} />
        <${Clock} name="as_of" label="true when" help="What was true at this time" first=${first} params=${params} />
        <${Clock} name="known_at" label="known when" help="What this memory knew at this time" first=${first} params=${params} />
      </header>
      ${then && html`<div class="past">You look at the past${params.as_of ? `: what was true on ${day(params.as_of)}` : ""}${params.known_at ? `: what was known on ${day(params.known_at)}` : ""}. <button class="link" onClick=${() => change({ as_of: "", known_at: "" })}>Back to now</button> <button class="link" onClick=${() => copy(location.href)}>Copy the link to this view</button></div>`}
      <main id="main" tabindex="-1"><${Page} key=${where.page + where.id} where=${where} access=${access} scope=${scopeOf(params.scope)} stamp=${stamp} /></main>
    </div>
  </div>${help && html`<${Help} onClose=${() => setHelp(false)} />`}<${Notices} />`;
}

render(html`<${App} />`, Object.assign(document.getElementById("app"), { textContent: "" }));
