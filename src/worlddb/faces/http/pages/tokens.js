// Tokens: who may call this server, and which scopes each token opens. For administrators.
import { html, useState } from "./vendor/preact-htm.js";
import { get, post, scopeOf } from "./api.js";
import { attempt, Chip, copy, Dialog, Empty, Loaded, notify, Time, useLoaded } from "./parts.js";

const ROLES = {
  read: "read",
  write: "write: also write and amend",
  curate: "curate: also change and end",
  administer: "administer: everything, in every scope",
};
const scopesOf = (token) =>
  Object.entries(token.bounds).flatMap(([kind, values]) => values.map((value) => `${kind.slice(0, -3)}:${value}`));

function Adding({ scopes, onDone, onClose }) {
  const [role, setRole] = useState("curate");
  const send = (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    const whole = (text) => (text ? Number(text) : undefined);
    onDone("/v1/tokens", {
      name: given.name,
      role,
      expires: given.expires && `${given.expires}T00:00:00Z`,
      origin: given.origin,
      tenant: given.tenant,
      per_minute: whole(given.per_minute),
      memories_per_day: whole(given.memories_per_day),
      ...(role === "administer" ? {} : scopeOf(given.scope)),
    });
  };
  return html`<${Dialog} title="Add a token" onClose=${onClose}><form class="fields" onSubmit=${send}>
    <label>Name <input name="name" required maxlength="100" placeholder="ada's laptop" /></label>
    <label>Role <select name="role" value=${role} onChange=${(event) => setRole(event.target.value)}>${Object.entries(ROLES).map(([name, told]) => html`<option value=${name}>${told}</option>`)}</select></label>
    ${
      role !== "administer" &&
      html`<label>Scope that it opens <input name="scope" list="scopes" required pattern="(user|agent|app|run):.+" placeholder="user:ada" title="such as user:ada" /></label>
      <datalist id="scopes">${scopes.map((one) => html`<option value=${one.name}></option>`)}</datalist>`
    }
    <label>Ends on <input type="date" name="expires" /></label>
    <label>Requests in a minute <input type="number" name="per_minute" min="1" placeholder="no limit" /></label>
    <label>Memories in a day <input type="number" name="memories_per_day" min="1" placeholder="no limit" /></label>
    <label>What it brings in comes from <select name="origin"><option value="">the user</option>${["assistant", "import", "model", "tool", "web"].map((one) => html`<option>${one}</option>`)}</select></label>
    <div class="bar"><button class="main">Add</button><button type="button" onClick=${onClose}>Cancel</button></div>
  </form></${Dialog}>`;
}

function Sure({ what, token, onDone, onClose }) {
  const told = {
    rotate: "It gets another value; the old one opens nothing any more.",
    revoke: "Whoever uses it is not let in any more.",
  }[what];
  return html`<${Dialog} title=${`${what === "rotate" ? "Rotate" : "Revoke"} ${token.name}?`} onClose=${onClose}><p>${told}</p>
    <div class="bar"><button class=${what === "revoke" ? "bad" : "main"} onClick=${() => onDone(`/v1/tokens/${what}`, { name: token.name })}>${what === "rotate" ? "Rotate it" : "Revoke it"}</button>
      <button onClick=${onClose}>Cancel</button></div></${Dialog}>`;
}

function Shown({ issued, onClose }) {
  return html`<${Dialog} title=${`The token ${issued.name}`} onClose=${onClose}><p>It is shown this once; the server keeps a hash of it.</p><pre tabindex="0" class="mono">${issued.token}</pre>
    <div class="bar"><button class="main" onClick=${() => copy(issued.token)}>Copy</button><button onClick=${onClose}>Done</button></div></${Dialog}>`;
}

function Row({ token, canChange, ask }) {
  const scopes = scopesOf(token);
  return html`<tr><td class="text">${token.name}${token.tenant && html` <${Chip}>tenant ${token.tenant}</${Chip}>`}${token.state === "expired" && html` <${Chip} kind="bad">expired</${Chip}>`}</td>
    <td class="tight">${token.role}</td><td>${scopes.length ? scopes.join(", ") : "everything"}${token.origin && html`<div class="small soft">origin ${token.origin}</div>`}</td>
    <td class="small">${token.per_minute ? html`${token.per_minute} a minute<br />` : null}${token.memories_per_day ? `${token.written_today} of ${token.memories_per_day} memories today` : token.per_minute ? "" : "none"}</td>
    <td class="tight"><${Time} at=${token.expires} /></td><td class="tight"><${Time} at=${token.last_used} /></td>
    <td class="tight">${canChange && token.in_file && html`<button aria-label=${`Rotate ${token.name}`} onClick=${() => ask("rotate", token)}>Rotate</button> <button class="bad" aria-label=${`Revoke ${token.name}`} onClick=${() => ask("revoke", token)}>Revoke</button>`}</td></tr>`;
}

export function Tokens({ access, stamp }) {
  const [open, setOpen] = useState(null);
  const page = useLoaded(
    async (signal) => {
      if (!access.manages_tokens) return null;
      const [listed, found] = await Promise.all([
        get("/v1/tokens", {}, signal),
        get("/v1/scopes", { limit: 1000 }, signal).catch(() => ({ scopes: [] })),
      ]);
      return { tokens: listed.tokens, scopes: found.scopes };
    },
    [stamp],
  );
  if (!access.manages_tokens)
    return html`<h1>Tokens</h1><${Empty} title="Tokens are for an administrator">The server needs tokens, and yours has to open the whole server.</${Empty}>`;
  const close = () => setOpen(null);
  const send = (path, given) =>
    attempt(async () => {
      const done = await post(path, given);
      if (!done.token) notify(`Revoked ${done.name}.`);
      setOpen(done.token ? { issued: done } : null);
      page.again();
    });
  const canChange = !access.read_only;
  return html`<h1>Tokens</h1><${Loaded} of=${page}>${({ tokens, scopes }) => html`
    ${canChange && html`<div class="bar"><button class="main" onClick=${() => setOpen({ adding: true })}>Add a token</button></div>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Tokens"><table><thead><tr><th>name</th><th class="tight">role</th><th>opens</th><th>limits</th><th class="tight">ends</th><th class="tight">last used</th><th class="tight">actions</th></tr></thead>
      <tbody>${tokens.map((one) => html`<${Row} key=${one.name} token=${one} canChange=${canChange} ask=${(what, token) => setOpen({ what, token })} />`)}</tbody></table></div>
    <h2>Scopes</h2><div class="scroll" tabindex="0" role="region" aria-label="Scopes"><table><thead><tr><th>scope</th><th>tokens that open it</th></tr></thead>
      <tbody>${scopes.map(
        (one) =>
          html`<tr key=${one.name}><td class="text">${one.name}</td><td>${
            tokens
              .filter((token) => scopesOf(token).includes(one.name))
              .map((token) => token.name)
              .join(", ") || html`<span class="soft">administrators alone</span>`
          }</td></tr>`,
      )}</tbody></table></div>
    ${open && open.adding && html`<${Adding} scopes=${scopes} onDone=${send} onClose=${close} />`}
    ${open && open.what && html`<${Sure} what=${open.what} token=${open.token} onDone=${send} onClose=${close} />`}
    ${open && open.issued && html`<${Shown} issued=${open.issued} onClose=${close} />`}`}</${Loaded}>`;
}
