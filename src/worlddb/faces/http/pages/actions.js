// What changes the store: amend, retire, undo. Each says what it did and offers the way back.
import { post } from "./api.js";
import { attempt, notify, place } from "./parts.js";
import { scopeOf } from "./api.js";

/** Tell every page that the store has changed. */
export function changed() {
  dispatchEvent(new Event("worlddb:changed"));
}

const here = () => scopeOf(place().params.scope);

/** Return what undoes the commits of these results, or nothing if nothing was written. */
export function undoOf(...results) {
  const commits = results.filter((one) => one && one.commit).map((one) => one.commit.seq);
  if (!commits.length) return undefined;
  return () => attempt(async () => {
    await post("/v1/undo", { commit: commits, ...here() });
    notify("Taken back.");
    changed();
  });
}

export function amend(memory, text) {
  return attempt(async () => {
    const written = await post(`/v1/memories/${memory.id}/amend`, { text, ...here() });
    notify("Amended: the old memory has ended, the new one is in its place.", undoOf(written));
    changed();
    return written;
  });
}

export function retire(memories) {
  return attempt(async () => {
    const results = [];
    for (const one of memories) results.push(await post(`/v1/memories/${one.id}/retire`, here()));
    notify(memories.length === 1 ? "Retired: it is not found any more." : `${memories.length} memories retired.`, undoOf(...results));
    changed();
    return results;
  });
}
