// Small parts that every page uses: times, ids, chips, dialogs, notices, loading.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";

// -- the address bar: page, id and parameters; scope and clocks go along from page to page ----------

const KEPT = ["scope", "as_of", "known_at"];

export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
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

// -- values ----------------------------------------------------------------------------------------

const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function ago(time) {
  const seconds = (new Date(time) - Date.now()) / 1000;
  for (const [unit, size] of UNITS) if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  return "just now";
}

export function Time({ at }) {
  return at ? html`<time datetime=${at} title=${at}>${ago(at)}</time>` : html`<span class="soft">–</span>`;
}

export function day(time) {
  return time ? new Date(time).toISOString().slice(0, 10) : "";
}

export function Id({ id, page = "memory", text }) {
  return html`<a class="mono" href=${link(page, id)} title=${id}>${text || id.slice(0, 8)}</a>`;
}

export const textOf = (node) => node.text || node.content || node.name || (node.erased ? "(erased)" : "(empty)");

export function Chip({ kind = "", title, children }) {
  return html`<span class="chip ${kind}" title=${title}>${children}</span>`;
}

// -- loading, errors, nothing there ----------------------------------------------------------------

/** Run `load(signal)` whenever `keys` change; return what came, the error, and a way to run it again. */
export function useLoaded(load, keys) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
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

export function Problem({ error }) {
  return error ? html`<p class="problem" role="alert">${error.message}</p>` : null;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><strong>${title}</strong>${children}</div>`;
}

export function Loaded({ of, children }) {
  if (of.error) return html`<${Problem} error=${of.error} />`;
  if (!of.data) return html`<p class="loading" role="status">Loading …</p>`;
  return children(of.data);
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

export function Notices() {
  const [all, set] = useState([]);
  setNotices = set;
  const drop = (one) => set((old) => old.filter((other) => other.id !== one.id));
  return html`<div class="toasts" role="status" aria-live="polite">
    ${all.map((one) => html`<div class="toast" key=${one.id}><span>${one.text}</span>
      ${one.undo && html`<button onClick=${() => { drop(one); one.undo(); }}>Undo</button>`}</div>`)}
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
  useEffect(() => {
    box.current.showModal();
  }, []);
  return html`<dialog ref=${box} onClose=${onClose} aria-labelledby="dialog-title">
    <h2 id="dialog-title">${title}</h2>${children}
  </dialog>`;
}

export function TextDialog({ title, hint, text = "", button, onDone, onClose }) {
  const [value, setValue] = useState(text);
  const send = (event) => {
    event.preventDefault();
    onDone(value);
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${send}>
      <label>${hint}<textarea name="text" required value=${value} onInput=${(event) => setValue(event.target.value)}></textarea></label>
      <div class="bar"><button class="main" disabled=${!value.trim()}>${button}</button>
        <button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  </${Dialog}>`;
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
