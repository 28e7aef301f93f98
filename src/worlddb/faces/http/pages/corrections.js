// What puts a memory right: the buttons beside a row, a hit or a whole memory, and the dialogs that they open.
import { html, useState } from "./vendor/preact-htm.js";
import { amend, erase, isPinned, pin, retire } from "./actions.js";
import { Dialog, isOver, may, textOf } from "./parts.js";

const NO_TEXTS = new Set(["Entity", "Scope", "World"]); // Names and places have no text to amend.
const QUOTED = 3; // Texts that are repeated before they are erased.

/** The buttons for one memory that has not ended; `onAmend` opens the dialog. */
export function CorrectionButtons({ one, onAmend }) {
  if (isOver(one) || NO_TEXTS.has(one.type)) return null;
  return html`${may("write") && html`<button title="Say what is true instead" onClick=${() => onAmend(one)}>Amend</button>`}
    ${
      may("curate") &&
      html` <button class="pin" title="What is pinned is always among what an agent is given first" onClick=${() => pin([one])}>
          ${isPinned(one) ? "Unpin" : "Pin"}</button>
        <button title="End it: no recall finds it any more, and the past keeps it" onClick=${() => retire([one])}>Retire</button>`
    }`;
}

export function AmendDialog({ memory, onDone, onClose }) {
  const text = memory.text || textOf(memory);
  const [value, setValue] = useState(text);
  const send = async (event) => {
    event.preventDefault();
    const written = await amend(memory, value);
    if (written) onDone(written);
  };
  return html`<${Dialog} title="Amend a memory" onClose=${onClose}>
    <form onSubmit=${send}>
      <label>What is true instead
        <textarea name="text" required value=${value} onInput=${(event) => setValue(event.target.value)}></textarea></label>
      <p class="small soft">The old text ends now and stays in the past. It can be taken back.</p>
      <div class="bar"><button class="main" disabled=${!value.trim() || value === text}>Amend</button>
        <button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  </${Dialog}>`;
}

/** Erasing has no way back, so it is asked for, with the texts. */
export function EraseDialog({ memories, onDone, onClose }) {
  const title = memories.length > 1 ? `Erase ${memories.length} memories for good` : "Erase for good";
  const run = async () => {
    if (await erase(memories)) onDone();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${memories.slice(0, QUOTED).map((one) => html`<blockquote class="clamp" key=${one.id}>${textOf(one)}</blockquote>`)}
    ${memories.length > QUOTED && html`<p class="small soft">and ${memories.length - QUOTED} more</p>`}
    <p>The text, what was derived from it, and its traces in the file are removed.
      ${" "}<strong>This cannot be undone.</strong> The receipt is saved as a file.</p>
    <div class="bar"><button class="bad" onClick=${run}>Erase</button><button onClick=${onClose}>Cancel</button></div>
  </${Dialog}>`;
}
