// Small parts that every page uses: times, ids, chips, dialogs, notices, loading.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { get, isAdmin, isAtLeast, post, recall } from "./api.js";

// -- the address bar: page, id and parameters; scope and clocks go along from page to page ----------

const KEPT = ["scope", "as_of", "known_at"];
export const FIRST_PAGE = { after: "", page: "", more: "" };

export function place() {
  const [, path, query] = location.hash.match(/^#?\/?([^?]*)\??(.*)$/s); // A question mark in a question is a part of it.
  const [page, id] = path.split("/");
  return { page: page || "memories", id: id || "", params: Object.fromEntries(new URLSearchParams(query || "")) };
}

export function link(page, id = "", more = {}) {
  const { params } = place();
  const kept = Object.fromEntries(KEPT.filter((name) => params[name]).map((name) => [name, params[name]]));
  const query = new URLSearchParams(Object.entries({ ...kept, ...more }).filter(([, value]) => value));
  return `#/${page}${id ? `/${id}` : ""}${query.size ? `?${query}` : ""}`;
}

/** Change parameters of the present page, without a new entry in the browser's history. */
export function change(more) {
  const { page, id, params } = place();
  const query = new URLSearchParams(Object.entries({ ...params, ...more }).filter(([, value]) => value));
  history.replaceState(null, "", `#/${page}${id ? `/${id}` : ""}${query.size ? `?${query}` : ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Whether somebody may change what a page shows: never in the past, and never more than the role of the token allows. */
export function may(role) {
  const { params } = place();
  return isAtLeast(role) && !params.as_of && !params.known_at;
}

/** A text of a field that is also in the address: typing changes it (at once, or when sent), and so does another address. */
export function useTyped(name, given, atOnce) {
  const [text, setText] = useState(given);
  const typed = useRef(given); // What stands in the field: a fast hand sends it before the page is drawn again.
  const sent = useRef(given);
  const send = () => {
    const now = typed.current.trim();
    if (atOnce && now === sent.current) return;
    sent.current = now;
    change({ [name]: now, ...FIRST_PAGE });
  };
  const type = (now) => {
    typed.current = now;
    setText(now);
    if (atOnce) send();
  };
  useLayoutEffect(() => {
    if (given !== sent.current) {
      sent.current = typed.current = given;
      setText(given);
    }
  }, [given]);
  return [text, type, send];
}

// -- values ----------------------------------------------------------------------------------------

const UNITS = [
  ["year", 31536000],
  ["month", 2592000],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const inShort = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

export function ago(time, format = relative) {
  const seconds = (new Date(time) - Date.now()) / 1000;
  for (const [unit, size] of UNITS)
    if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
  return "just now";
}

export function Time({ at, short = false }) {
  return at ? html`<time datetime=${at} title=${at}>${ago(at, short ? inShort : relative)}</time>` : html`<span class="soft">–</span>`;
}

export function day(time) {
  return time ? new Date(time).toISOString().slice(0, 10) : "";
}

/** A time of one of the clocks: the day that it ends, or the day and the time. */
export const onClock = (time) => (time.endsWith("T23:59:59Z") ? day(time) : time.slice(0, 16).replace("T", " "));

/** Return a time as microseconds since 1970: the calls count them, and a Date has only milliseconds. */
export function micros(time) {
  const part = /\.(\d+)/.exec(time);
  return Math.floor(Date.parse(time) / 1000) * 1000000 + (part ? Number(part[1].padEnd(6, "0").slice(0, 6)) : 0);
}

export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

export function Id({ id, page = "memory", text }) {
  return html`<a class="mono" href=${link(page, id)} title=${id}>${text || id.slice(0, 8)}</a>`;
}

/** The time that the page shows as what is true: that of the first clock, or now. */
export const trueWhen = () => new Date(place().params.as_of || Date.now());
export const isOver = (node) => Boolean(node.valid_to) && new Date(node.valid_to) <= trueWhen();

export const textOf = (node) => node.text || node.content || node.name || (node.erased ? "(erased)" : "(empty)");

export function Chip({ kind = "", title, children }) {
  return html`<span class="chip ${kind}" title=${title}>${children}</span>`;
}

// -- loading, errors, nothing there ----------------------------------------------------------------

/** Run `load(signal)` whenever `keys` change; return what came, the error, and a way to run it again. */
export function useLoaded(load, keys) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  useLayoutEffect(() => {
    // Before the page is drawn: an effect would ask some frames later.
    const stop = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    load(stop.signal).then(
      (data) => !stop.signal.aborted && setState({ data, error: null, loading: false }),
      (error) => !stop.signal.aborted && setState({ data: null, error, loading: false }),
    );
    return () => stop.abort();
  }, [...keys, turn]);
  return { ...state, again: () => setTurn((old) => old + 1) };
}

/** Return what runs one search after another: those that a later key has made needless are never sent. */
export function oneAtATime() {
  let last = Promise.resolve();
  return (work, signal) => {
    const turn = last.then(() => (signal.aborted ? null : work()));
    last = turn.catch(() => {});
    return turn;
  };
}

export function Problem({ error, again }) {
  const isMissing = error && error.status === 404;
  if (isMissing)
    return html`<p class="problem" role="alert">It is not here: it belongs to another scope, was erased, or was not known at this time. Choose another scope or time at the top. <span class="small">(${error.message})</span></p>`;
  return error
    ? html`<p class="problem" role="alert">${error.message}${again && html` <button class="link" onClick=${again}>Try again</button>`}</p>`
    : null;
}

/** The way back from one thing to the page that led to it, with its search and its filters; `or` is where it is listed. */
export function Back({ to, or: [page, title] }) {
  return html`<p class="small"><a href=${to ? link(to.page, "", to.more) : link(page)}>← ${to ? to.title : title}</a></p>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><strong>${title}</strong>${children}</div>`;
}

const SLOW_MS = 1500; // Somebody who waits longer wants to know why.
const LOOK_MS = 3000; // How often the server is asked how far it is.

/** Says why an answer takes long, over the page, so that nothing jumps: the first question of a large store prepares its index. */
function Slow() {
  const [told, setTold] = useState(null);
  useEffect(() => {
    const look = async () => {
      const { findings } = isAdmin() ? await get("/v1/doctor").catch(() => ({ findings: [] })) : { findings: [] };
      setTold((findings.find((one) => one.part === "vectors") || {}).seen || "");
    };
    const first = setTimeout(look, SLOW_MS);
    const next = setInterval(look, SLOW_MS + LOOK_MS);
    return () => {
      clearTimeout(first);
      clearInterval(next);
    };
  }, []);
  const isReady = /^([\d,]+) of \1 /.test(told || ""); // All nodes are embedded.
  return told === null
    ? null
    : html`<div class="slow" role="status">${isReady ? "This takes longer than usual: the server is busy, or the store is large." : "Preparing … The first question to a large store after a start builds its index; the next ones are quick."}${told && html` <span class="small">${told}</span>`}</div>`;
}

/** What was loaded, by `children(data)`; `title` is the heading of a page that has none without its data. */
export function Loaded({ of, title, children }) {
  if (of.error) return html`${title && html`<h1>${title}</h1>`}<${Problem} error=${of.error} again=${of.again} />`;
  if (!of.data) return html`${title && html`<h1>${title}</h1>`}<p class="loading" role="status">Loading …</p><${Slow} />`;
  // What is there stays until the next comes: nothing jumps.
  return html`<div class=${of.loading ? "busy" : ""} aria-busy=${of.loading}>${children(of.data)}</div>${of.loading && html`<${Slow} />`}`;
}

// -- notices, with a way back ----------------------------------------------------------------------

let setNotices = () => {};
let number = 0;

/** Show a notice; `undo` is what its button does. */
export function notify(text, undo) {
  const one = { id: (number += 1), text, undo };
  setNotices((old) => [...old.slice(-2), one]);
  setTimeout(() => setNotices((old) => old.filter((other) => other.id !== one.id)), undo ? 12000 : 5000);
}

export const isTyping = (event) =>
  /INPUT|TEXTAREA|SELECT/.test(event.target.tagName) && event.target.type !== "checkbox";

/** Call what a key means, unless somebody types, a dialog is open, or the key belongs to the browser.
 * Keys are heard before the page is shown: an effect would come after it, and miss those of a fast hand. */
export function useKeys(keys, watched) {
  useLayoutEffect(() => {
    const press = (event) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
        return;
      if (!Object.hasOwn(keys, event.key) || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key](event);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, watched);
}

/** The row that the keys `j` and `k` have chosen; its link, which has the id as `data-row`, has the focus. */
export function useCursor(ids, watched) {
  const [at, setAt] = useState(-1);
  useEffect(() => setAt(-1), watched);
  const move = (to) => {
    setAt(to);
    const anchor = document.querySelector(`[data-row="${ids[to]}"]`);
    if (anchor) anchor.focus();
  };
  return { at, keys: { j: () => move(Math.min(at + 1, ids.length - 1)), k: () => move(Math.max(at - 1, 0)) } };
}

export function Notices() {
  const [all, set] = useState([]);
  setNotices = set;
  const drop = (one) => set((old) => old.filter((other) => other.id !== one.id));
  const last = all.findLast((one) => one.undo);
  useKeys(
    {
      u:
        last &&
        (() => {
          drop(last);
          last.undo();
        }),
    },
    [last],
  );
  return html`<div class="toasts" role="status" aria-live="polite">
    ${all.map(
      (one) => html`<div class="toast" key=${one.id}><span>${one.text}</span>
      ${
        one.undo &&
        html`<button onClick=${() => {
          drop(one);
          one.undo();
        }}>Undo${one === last && html` <kbd>u</kbd>`}</button>`
      }</div>`,
    )}
  </div>`;
}

/** Do something; say what went wrong if it did. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    notify(error.message);
    return null;
  }
}

// -- dialogs ---------------------------------------------------------------------------------------

export function Dialog({ title, onClose, children }) {
  const box = useRef();
  useLayoutEffect(() => {
    box.current.showModal();
  }, []);
  return html`<dialog ref=${box} onClose=${onClose} aria-labelledby="dialog-title">
    <h2 id="dialog-title">${title}</h2>${children}
  </dialog>`;
}

// -- choosing a node by its words, its name or its id -----------------------------------------------

const CHOICES = 8;
const PAUSE_MS = 120; // Somebody who types is not interrupted by each letter.

async function choicesFor(text, scope, signal) {
  const query = (given) =>
    post("/v1/query", { query: { limit: CHOICES, ...given }, ...scope }, signal).then(
      (found) => found.nodes,
      () => [],
    );
  if (/^[0-9a-f]{4,64}$/.test(text)) return query({ seeds: [text], include_superseded: true });
  const [named, found] = await Promise.all([
    query({ text, match: "all", steps: [{ op: "filter_type", types: ["Entity"] }] }),
    recall({ query: text, k: CHOICES, include_retired: true, ...scope }, signal).then((told) =>
      told.hits.map((hit) => hit.node),
    ),
  ]);
  return [...new Map([...named, ...found].map((node) => [node.id, node])).values()].slice(0, CHOICES);
}

/** A field that finds nodes while somebody types; `onPick` gets the node. */
export function Picker({ name, label, scope, onPick }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(-1);
  useEffect(() => {
    const stop = new AbortController();
    const words = text.trim();
    const later = setTimeout(
      () =>
        words.length < 2
          ? setFound([])
          : choicesFor(words, scope, stop.signal).then(
              (nodes) => !stop.signal.aborted && setFound(nodes),
              () => {},
            ),
      PAUSE_MS,
    );
    return () => {
      clearTimeout(later);
      stop.abort();
    };
  }, [text]);
  const pick = (node) => {
    setText("");
    setFound([]);
    setAt(-1);
    onPick(node);
  };
  const key = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Escape") setFound([]);
    else if (event.key === "Enter" && found.length) pick(found[Math.max(at, 0)]);
    else return;
    event.preventDefault();
  };
  const list = `${name}-choices`;
  return html`<div class="picker"><label>${label} <input type="search" name=${name} role="combobox" aria-expanded=${found.length > 0} aria-controls=${list} aria-autocomplete="list" autocomplete="off"
      aria-activedescendant=${at >= 0 && found[at] ? `${list}-${at}` : undefined} placeholder="words, a name or an id" value=${text} onInput=${(
        event,
      ) => {
        setText(event.target.value);
        setAt(-1);
      }} onKeyDown=${key} /></label>
    <ul id=${list} role="listbox" aria-label=${label} hidden=${!found.length}>${found.map((node, place) => html`<li key=${node.id} id=${`${list}-${place}`} role="option" aria-selected=${place === at} onClick=${() => pick(node)}>${textOf(node).slice(0, 120)} <span class="small soft">${node.type}</span></li>`)}</ul></div>`;
}

export function save(name, data, kind = "application/json") {
  const address = URL.createObjectURL(new Blob([data], { type: kind }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

export async function copy(text) {
  await navigator.clipboard.writeText(text).then(
    () => notify("Copied."),
    () => notify("The browser does not let the page copy."),
  );
}
