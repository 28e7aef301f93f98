// Branches: try something beside the store, look at the difference, merge or drop it. For administrators.
import { html, useState } from "./vendor/preact-htm.js";
import { get, post } from "./api.js";
import { changed, undoOf } from "./actions.js";
import { attempt, Chip, Dialog, Empty, Loaded, notify, textOf, Time, useLoaded } from "./parts.js";

const at = (name, what) => `/v1/branches/${encodeURIComponent(name)}/${what}`;

function Difference({ name }) {
  const page = useLoaded((signal) => get(at(name, "diff"), {}, signal), [name]);
  return html`<${Loaded} of=${page}>${({ nodes, edges, changes }) =>
    nodes.length + edges.length + changes.length === 0
      ? html`<p class="soft">Nothing that is not merged.</p>`
      : html`<ul aria-label=${`What ${name} has`}>
    ${nodes.map((node) => html`<li key=${node.id}><span class="chip good">new</span> ${node.type} ${textOf(node)}</li>`)}
    ${changes.map((one, place) => html`<li key=${place} class="small"><span class="chip warn">${one.kind}</span> <span class="mono">${one.id.slice(0, 8)}</span></li>`)}
    ${edges.length > 0 && html`<li class="small soft">${edges.length} edges</li>`}
  </ul>`}</${Loaded}>`;
}

function Merging({ name, onDone, onClose }) {
  const page = useLoaded((signal) => post(at(name, "merge"), { dry_run: true }, signal), [name]);
  return html`<${Dialog} title=${`Merge ${name}`} onClose=${onClose}>
    <p>What was written to the branch is written to the store, as one commit that can be undone.</p>
    <${Loaded} of=${page}>${({
      nodes,
      edges,
      conflicts,
      proposals,
    }) => html`<p>${nodes} nodes and ${edges} edges are new, ${proposals.length} names may be the same.</p>
      ${conflicts.length > 0 && html`<p>Both sides have changed this; both stay, and are marked:</p><ul>${conflicts.map((one, place) => html`<li key=${place}><span class="chip warn">${one.kind}</span> ${one.reason}</li>`)}</ul>`}`}</${Loaded}>
    <div class="bar"><button class="main" disabled=${!page.data} onClick=${onDone}>Merge it</button><button onClick=${onClose}>Cancel</button></div>
  </${Dialog}>`;
}

function Dropping({ name, onDone, onClose }) {
  return html`<${Dialog} title=${`Drop ${name}?`} onClose=${onClose}><p>All that was written to it and not merged is gone.</p>
    <div class="bar"><button class="bad" onClick=${onDone}>Drop it</button><button onClick=${onClose}>Cancel</button></div></${Dialog}>`;
}

export function Branches({ access, stamp }) {
  const [shown, setShown] = useState(null);
  const [asked, setAsked] = useState(null);
  const page = useLoaded((signal) => (access.admin ? get("/v1/branches", {}, signal) : Promise.resolve(null)), [stamp]);
  const close = () => setAsked(null);
  const send = (path, given, told) =>
    attempt(async () => {
      const done = await post(path, given);
      close();
      notify(told(done), done.commit ? undoOf(done) : undefined);
      page.again();
      changed();
    });
  const create = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get("name");
    event.target.reset();
    send("/v1/branches", { name }, () => `Branch ${name} was made; 'worlddb --branch ${name} serve' opens it.`);
  };
  const merge = () =>
    send(at(asked.name, "merge"), {}, (done) =>
      done.commit ? `Merged by commit ${done.commit.seq}.` : "Nothing was new.",
    );
  const drop = () => send(at(asked.name, "drop"), {}, () => `Dropped ${asked.name}.`);
  const canChange = !access.read_only;
  if (!access.admin) return html`<h1>Branches</h1><${Empty} title="Branches are for an administrator">Your token has to open the whole server.</${Empty}>`;
  return html`<h1>Branches</h1><${Loaded} of=${page}>${({ branches }) => html`
    ${canChange && html`<form class="bar" onSubmit=${create}><label>Name of a new branch <input name="name" required maxlength="64" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" placeholder="try" /></label><button class="main">Create</button></form>`}
    ${
      branches.length === 0
        ? html`<${Empty} title="No branches">A branch is a store of its own that begins as this one is now. Try an import or a consolidation on it, then merge or drop it.</${Empty}>`
        : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Branches"><table><thead><tr><th>name</th><th class="tight">forked from commit</th><th class="tight">when</th><th class="tight">space</th><th>what it has</th><td></td></tr></thead><tbody>
      ${branches.map(
        (
          one,
        ) => html`<tr key=${one.id}><td class="text">${one.name} <${Chip}>${one.actor}</${Chip}></td><td class="tight">${one.fork}</td><td class="tight"><${Time} at=${one.created_at} /></td><td class="tight">${Math.ceil(one.size_bytes / 1000)} kB</td>
        <td><button aria-expanded=${shown === one.id} onClick=${() => setShown(shown === one.id ? null : one.id)}>Show</button>${shown === one.id && html`<${Difference} name=${one.name} />`}</td>
        <td class="tight">${canChange && html`<button aria-label=${`Merge ${one.name}`} onClick=${() => setAsked({ what: "merge", name: one.name })}>Merge</button> <button class="bad" aria-label=${`Drop ${one.name}`} onClick=${() => setAsked({ what: "drop", name: one.name })}>Drop</button>`}</td></tr>`,
      )}
    </tbody></table></div>`
    }
    ${asked && asked.what === "merge" && html`<${Merging} name=${asked.name} onDone=${merge} onClose=${close} />`}
    ${asked && asked.what === "drop" && html`<${Dropping} name=${asked.name} onDone=${drop} onClose=${close} />`}`}</${Loaded}>`;
}
