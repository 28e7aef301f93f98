// The shell: who is signed in, whose memory is shown, at which of the two times, and which page.
import { html, render, useEffect, useLayoutEffect, useState } from "./vendor/preact-htm.js";
import { get, scopeOf, setAccess as keepAccess, signIn } from "./api.js";
import { change, copy, day, Dialog, FIRST_PAGE, isTyping, link, Notices, onClock, place, Problem } from "./parts.js";
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

/** One line drawing for each page, on a square of 16. */
const ICONS = {
  memories: "M2.5 3.5h11M2.5 8h11M2.5 12.5h7",
  ask: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.3 10.3l3.2 3.2",
  inbox: "M2.5 9l2-5.5h7l2 5.5v4h-11zM2.5 9h3.2l1 1.5h2.6l1-1.5h3.2",
  people: "M8 2.5a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4M3 13.5c.4-3 2.4-4 5-4s4.6 1 5 4",
  worlds:
    "M8 1.800a2 2 0 1 0 0 4 2 2 0 0 0 0-4M3.8 10.200a2 2 0 1 0 0 4 2 2 0 0 0 0-4M12.2 10.200a2 2 0 1 0 0 4 2 2 0 0 0 0-4M7 5.600l-2.3 4.700M9 5.600l2.3 4.7",
  journal: "M8 2.500a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3.200l2.2 1.5",
  branches:
    "M4.5 5.500v5M4.5 2a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.400M4.5 10.600a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.400M11.5 3.500a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.400M11.5 7c0 2.5-7 1-7 3.6",
  health: "M1.8 8.500h3l1.7-4.5 3 8 1.7-3.500h3",
  tokens: "M5.5 5.500a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.400M8.2 8.200h5.800v2.300M11.5 8.200v1.7",
  proof: "M8 1.800l5.2 2v4c0 3.2-2.2 5.3-5.2 6.4-3-1.1-5.2-3.2-5.2-6.400v-4zM5.6 8l1.7 1.7 3.2-3.4",
};
const Icon = ({ of }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[of]} /></svg>`;

const PAGES = {
  memories: ["Memories", Memories],
  ask: ["Ask", Ask],
  inbox: ["Inbox", Inbox],
  people: ["People", People],
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
    <p class="small soft">You have none? Whoever runs the server makes one on the page “Tokens”, or with <code>worlddb tokens add</code>.</p>
    <form onSubmit=${send}>
      <label>Token <input type="password" name="token" autocomplete="off" autofocus required value=${value} onInput=${(event) => setValue(event.target.value)} /></label>
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
    ${
      exact
        ? html`<input type="datetime-local" aria-label=${`${label}, the exact time in UTC`} value=${given ? given.slice(0, 16) : ""} onChange=${type} />`
        : html`<button class="link time" title="Give the exact time" aria-label=${`${label}: ${given && moved === null ? given : shown}; give the exact time`} onClick=${() => setExact(true)}>${given && moved === null ? onClock(given) : shown}</button>`
    }
    <button class="link back" disabled=${!given} title="Back to now" aria-label=${`${label}: now`} onClick=${() => change({ [name]: "", ...FIRST_PAGE })}>↺</button>
  </div>`;
}

const KEYS = [
  [
    "Everywhere",
    {
      "?": "this list",
      u: "undo what was done last",
      "g m": "go to Memories; also g a Ask, g i Inbox, g p People, g w Worlds, g j Journal, g h Health",
    },
  ],
  [
    "Memories",
    {
      "/": "search",
      "j k": "next, previous row",
      x: "choose the row",
      e: "amend it",
      p: "pin it, or unpin it",
      r: "retire it, or all that are chosen",
      a: "add",
      "n b": "next page, page before",
      Enter: "open the row",
    },
  ],
  [
    "Ask",
    { "/": "the question", "j k": "next, previous hit", e: "amend it", p: "pin it, or unpin it", r: "retire it", Enter: "open it" },
  ],
  ["Inbox", { "j k": "next, previous card", "a r s 1 2 b p": "what the buttons of the card say" }],
];
const GOES = { m: "memories", a: "ask", i: "inbox", p: "people", w: "worlds", j: "journal", h: "health" };

function Help({ onClose }) {
  // The list has the focus: the button below it would scroll the beginning away.
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}><div class="keyboard" tabindex="-1" autofocus>
      ${KEYS.map(([title, keys]) => html`<section key=${title}><h3>${title}</h3><dl>${Object.entries(keys).map(([key, told]) => html`<dt><kbd>${key}</kbd></dt><dd>${told}</dd>`)}</dl></section>`)}</div>
    <div class="bar"><button class="main" onClick=${onClose}>Close</button></div></${Dialog}>`;
}

/** The keys that hold on every page: help, and `g` with a letter for a page. */
function useShellKeys(showKeys) {
  useLayoutEffect(() => {
    let isGoing = false; // No state of the page: the letter may be typed before the page is drawn again.
    const press = (event) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
        return;
      if (event.key === "?") showKeys();
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

const shownName = (scope) => scope.replace(":", " ");

/** The names of the scopes that can be shown: those with memories, and those that the token opens. */
function namesOf(scopes, bounds) {
  const opened = Object.entries(bounds).flatMap(([kind, values]) => values.map((value) => `${kind.replace(/_id$/, "")}:${value}`));
  return [...new Set([...scopes.map((one) => one.name), ...opened])];
}

/** What the two sliders mean, by the example of the sample data. */
function ClockHelp({ onClose }) {
  return html`<${Dialog} title="Two clocks" onClose=${onClose}>
    <p>Each memory has two times: since when it is true, and since when this memory knows it.</p>
    <dl><dt>True when</dt><dd>shows what was true on a day. “I moved to Lisbon” in March: pull it to February, and you live in Hamburg.</dd>
      <dt>Known when</dt><dd>shows what had been written by a day, whatever it is about. It tells what an agent could know when it answered.</dd></dl>
    <p class="soft">The past cannot be changed. Both times are in the address: send it to show somebody the same view.</p>
    <div class="bar"><button class="main" onClick=${onClose}>Close</button></div></${Dialog}>`;
}

function Scopes({ names, chosen = "" }) {
  const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  // The list has a bounded width: the title tells a long name in full.
  return html`<label>Memory of <select name="scope" title=${chosen ? shownName(chosen) : undefined} value=${chosen}
      onChange=${(event) => change({ scope: event.target.value, ...FIRST_PAGE })}>
    ${all.length === 0 && html`<option value="">the default user</option>`}
    ${all.map((name) => html`<option value=${name}>${shownName(name)}</option>`)}
  </select></label>`;
}

const COUNTED = 100; // More decisions are told as "99+".

const WAITING = { "/v1/proposals": "proposals", "/v1/conflicts": "conflicts", "/v1/quarantine": "memories" };

/** How many decisions wait: names that may be the same, memories that cannot both be right, and those held back. */
function useDecisions(access, scope, stamp) {
  const [waiting, setWaiting] = useState(0);
  useEffect(() => {
    if (!access) return undefined;
    const stop = new AbortController();
    const ask = (path, name) =>
      get(path, { limit: COUNTED, ...scope }, stop.signal).then(
        (found) => found[name].length,
        () => 0,
      );
    // Later than the page itself: what is asked for comes first.
    const later = setTimeout(
      () =>
        Promise.all(Object.entries(WAITING).map(([path, name]) => ask(path, name))).then(
          (counts) => !stop.signal.aborted && setWaiting(counts.reduce((sum, one) => sum + one, 0)),
        ),
      300,
    );
    return () => {
      clearTimeout(later);
      stop.abort();
    };
  }, [access, JSON.stringify(scope), stamp]);
  return waiting;
}

/** Which past the two clocks show, in words. */
function pastOf({ as_of: valid, known_at: known }) {
  if (!known) return `what was true on ${onClock(valid)}`;
  return valid ? `what was true on ${onClock(valid)}, as far as it was known on ${onClock(known)}` : `what was known on ${onClock(known)}`;
}

function Theme() {
  const [theme, setTheme] = useState("");
  useEffect(() => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }, [theme]);
  return html`<label>Theme <select value=${theme} onChange=${(event) => setTheme(event.target.value)}>
    <option value="">System</option><option value="light">Light</option><option value="dark">Dark</option></select></label>`;
}

/** The way back to a list with its search, filters and page; scope and clocks are those of the time when it is used. */
function wayTo({ page, params: { scope, as_of, known_at, ...more } }) {
  return { page, more, title: (PAGES[page] || PAGES.memories)[0] };
}

function App() {
  const [where, setWhere] = useState(place());
  const [back, setBack] = useState(null);
  const [access, setAccess] = useState(null);
  const [error, setError] = useState(null);
  const [scopes, setScopes] = useState(null);
  const [first, setFirst] = useState(Date.now() - 30 * DAY_MS);
  const [turn, setTurn] = useState(0);
  const [help, setHelp] = useState("");
  useShellKeys(() => setHelp("keys"));

  useEffect(() => {
    let last = place();
    const follow = () => {
      const now = place();
      // From one memory or name to the next, the way back stays that to the list.
      if (!now.id) setBack(null);
      else if (!last.id) setBack(wayTo(last));
      last = now;
      setWhere(now);
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    get("/v1/access").then(
      (told) => {
        setError(null);
        keepAccess(told);
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
    get("/v1/scopes", { limit: 1000 }).then(
      (found) => {
        setScopes(found.scopes);
        // A memory is often older than the store: the clocks begin where its oldest scope does, and a year before.
        const born = found.scopes.map((one) => Date.parse(one.known_from)).filter(Number.isFinite);
        setFirst(Math.min(Date.now(), ...born) - 366 * DAY_MS);
      },
      () => setScopes((old) => old || []),
    );
  }, [access, stamp]);
  const names = scopes && access ? namesOf(scopes, access.bounds) : [];
  const needsScope = !where.params.scope && (!scopes || names.length > 0);
  useEffect(() => {
    if (needsScope && names.length) change({ scope: names[0] });
  }, [needsScope, scopes]);
  useEffect(() => {
    // In a narrow window the menu is one long line.
    const [side, current] = [document.querySelector(".side"), document.querySelector(".side [aria-current]")];
    if (current && side.scrollWidth > side.clientWidth) current.scrollIntoView({ inline: "center", block: "nearest" });
  }, [where.page, access]);
  useEffect(() => {
    const [title] = PAGES[where.page] || HIDDEN[where.page] || PAGES.memories;
    document.title = `${title} · WorldDB`;
  }, [where.page]);

  const waiting = useDecisions(access, scopeOf(where.params.scope), stamp);

  if (!access)
    return error
      ? html`<${SignIn} error=${error} onDone=${() => setTurn((old) => old + 1)} />`
      : html`<p class="loading">Loading …</p>`;
  const leave = () => {
    signIn("");
    setAccess(null);
    setScopes(null);
    setTurn(0);
  };
  const { params } = where;
  const [, Page] = PAGES[where.page] || HIDDEN[where.page] || PAGES.memories;
  const then = params.as_of || params.known_at;
  return html`<a class="skip" href="#main" onClick=${(event) => {
    event.preventDefault();
    document.querySelector("main").focus();
  }}>Skip to the page</a>
  <div class="shell">
    <nav class="side" aria-label="Pages">
      <a class="brand" aria-label="WorldDB" href=${link("memories")}><img src="/ui/icon.svg" alt="" /><span>WorldDB</span></a>
      ${Object.entries(PAGES)
        .filter(([, [, , isFor]]) => !isFor || isFor(access))
        .map(
          ([page, [title]]) =>
            html`<a class="item" href=${link(page)} aria-current=${page === (HIDDEN[where.page] ? "memories" : where.page) ? "page" : undefined}><${Icon} of=${page} /><span>${title}</span>${page === "inbox" && waiting > 0 && html`<span class="count" aria-label=${`${waiting} waiting`}>${waiting >= COUNTED ? "99+" : waiting}</span>`}</a>`,
        )}
      <div class="foot small soft">${access.token && html`<span>Token ${access.token}${access.read_only ? " (reads only)" : ""} <button class="link" onClick=${leave}>Sign out</button></span>`}
        <${Theme} /><button class="link" onClick=${() => setHelp("keys")}>Keyboard shortcuts <kbd>?</kbd></button><span>Version ${access.version}</span></div>
    </nav>
    <div>
      <header class="top">
        <${Scopes} names=${names} chosen=${params.scope} />
        <${Clock} name="as_of" label="True when" help="What was true at this time" first=${first} params=${params} />
        <${Clock} name="known_at" label="Known when" help="What this memory knew at this time" first=${first} params=${params} />
        <button class="what" aria-label="What do the two clocks mean?" title="What do the two clocks mean?" onClick=${() => setHelp("clocks")}>?</button>
      </header>
      ${then && html`<section class="past" aria-label="The past">You look at the past: ${pastOf(params)}. <button class="link" onClick=${() => change({ as_of: "", known_at: "" })}>Back to now</button> <button class="link" onClick=${() => copy(location.href)}>Copy the link to this view</button></section>`}
      <main id="main" tabindex="-1">${needsScope ? html`<p class="loading">Loading …</p>` : html`<${Page} key=${where.page + where.id} where=${where} access=${access} scope=${scopeOf(params.scope)} stamp=${stamp} back=${back} />`}</main>
    </div>
  </div>${help && html`<${help === "keys" ? Help : ClockHelp} onClose=${() => setHelp("")} />`}<${Notices} />`;
}

render(html`<${App} />`, Object.assign(document.getElementById("app"), { textContent: "" }));
