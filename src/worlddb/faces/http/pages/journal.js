// Journal: every commit with who made it, what it changed, and the way back; growth over time.
import { html, useState } from "./vendor/preact-htm.js";
import { get, post } from "./api.js";
import { changed } from "./actions.js";
import { attempt, Chip, day, Dialog, Empty, link, Loaded, notify, textOf, Time, useLoaded } from "./parts.js";

const PAGE = 50;

function Difference({ first, last, scope }) {
  const page = useLoaded((signal) => get("/v1/diff", { first, last, ...scope }, signal), [first, last]);
  return html`<${Loaded} of=${page}>${(data) => html`<ul>
    ${(data.nodes || []).map((node) => html`<li key=${node.id}><span class="chip good">new</span> ${node.type} <a href=${link("memory", node.id)}>${textOf(node)}</a></li>`)}
    ${(data.edges || []).map((edge) => html`<li key=${edge.id} class="small soft">edge ${edge.type} <span class="mono">${edge.id.slice(0, 8)}</span></li>`)}
    ${(data.changes || []).map((one, place) => html`<li key=${place} class="small"><span class="chip warn">${one.kind}</span> <a class="mono" href=${link("memory", one.id)}>${one.id.slice(0, 8)}</a></li>`)}
  </ul>`}</${Loaded}>`;
}

function Undo({ commit, scope, onClose }) {
  const page = useLoaded((signal) => post("/v1/undo", { commit: commit.seq, dry_run: true, ...scope }, signal), [commit.seq]);
  const undo = () => attempt(async () => {
    const done = await post("/v1/undo", { commit: commit.seq, ...scope });
    onClose();
    notify(done.commit ? `Taken back by commit ${done.commit.seq}.` : "Nothing had to be taken back.");
    changed();
  });
  return html`<${Dialog} title=${`Undo commit ${commit.seq}`} onClose=${onClose}>
    <p>What it wrote is retired, and what it ended lives again. The journal keeps both.</p>
    <${Loaded} of=${page}>${(data) => html`<p>${(data.retired || []).length} retired, ${(data.revived || data.restored || []).length} live again.</p>`}</${Loaded}>
    <div class="bar"><button class="main" disabled=${!page.data} onClick=${undo}>Undo</button><button onClick=${onClose}>Cancel</button></div>
  </${Dialog}>`;
}

/** How many commits there were up to each time. */
function Growth({ commits }) {
  if (commits.length < 3) return null;
  const times = commits.map((one) => Date.parse(one.time)).reverse();
  const [first, last] = [times[0], times[times.length - 1]];
  const low = commits[commits.length - 1].seq;
  const high = commits[0].seq;
  const x = (time) => (last === first ? 0 : (600 * (time - first)) / (last - first));
  const y = (place) => 90 - (80 * place) / (times.length - 1);
  const line = times.map((time, place) => `${x(time).toFixed(1)},${y(place).toFixed(1)}`).join(" L");
  return html`<svg class="plot" viewBox="0 0 600 110" preserveAspectRatio="none" role="img" aria-label=${`Commits ${low} to ${high}, from ${day(first)} to ${day(last)}`}>
    <path class="area" d=${`M0,90 L${line} L600,90 Z`} /><path d=${`M${line}`} /></svg><p class="small soft">Commits ${low} to ${high}, from ${day(first)} to ${day(last)}</p>`;
}

export function Journal({ where, access, scope, stamp }) {
  const { params } = where;
  const [more, setMore] = useState([]);
  const [cursor, setCursor] = useState(null);
  const [open, setOpen] = useState(null);
  const [undoing, setUndoing] = useState(null);
  const [span, setSpan] = useState(null);
  const page = useLoaded(async (signal) => {
    setMore([]);
    const found = await get("/v1/log", { limit: PAGE, ...scope }, signal);
    setCursor(found.next_cursor);
    return found;
  }, [params.scope, stamp]);
  const next = () => attempt(async () => {
    const found = await get("/v1/log", { limit: PAGE, cursor, ...scope });
    setMore([...more, ...found.commits]);
    setCursor(found.next_cursor);
  });
  return html`<h1>Journal</h1><${Loaded} of=${page}>${(data) => {
    const commits = [...data.commits, ...more];
    if (!commits.length) return html`<${Empty} title="No commits yet">Every write is a commit, with who made it.</${Empty}>`;
    return html`<${Growth} commits=${commits} />
      <form class="bar" onSubmit=${(event) => { event.preventDefault(); const { first, last } = event.target.elements; setSpan({ first: Number(first.value), last: Number(last.value) }); }}>
        <label>What changed after commit <input type="number" name="first" min="0" required /></label><label>up to commit <input type="number" name="last" min="1" required /></label><button>Compare</button></form>
      ${span && html`<div class="card"><${Difference} ...${span} scope=${scope} /></div>`}
      <div class="scroll"><table><thead><tr><th class="tight">commit</th><th>when</th><th>who</th><th>what</th><th class="tight">actions</th></tr></thead><tbody>
      ${commits.map((one) => html`<tr key=${one.seq}><td class="tight">${one.seq}</td><td><${Time} at=${one.time} /></td><td>${one.actor}</td>
        <td><${Chip}>${one.nodes} nodes</${Chip}><${Chip}>${one.edges} edges</${Chip}>${one.changes.length > 0 && html`<${Chip} kind="warn">${one.changes.length} changes</${Chip}>`}
          ${open === one.seq && html`<${Difference} first=${Math.max(0, one.seq - 1)} last=${one.seq} scope=${scope} />`}</td>
        <td class="tight"><button aria-expanded=${open === one.seq} onClick=${() => setOpen(open === one.seq ? null : one.seq)}>Show</button> ${!access.read_only && html`<button onClick=${() => setUndoing(one)}>Undo</button>`}</td></tr>`)}
      </tbody></table></div>
      ${cursor && html`<div class="bar"><button onClick=${next}>Show more</button></div>`}
      ${undoing && html`<${Undo} commit=${undoing} scope=${scope} onClose=${() => setUndoing(null)} />`}`;
  }}</${Loaded}>`;
}
