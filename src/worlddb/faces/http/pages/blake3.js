// BLAKE3, the plain hash, after its published description: enough to verify a proof in the browser.
const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;
const BLOCK = 64;
const CHUNK = 1024;

const turn = (value, bits) => (value >>> bits) | (value << (32 - bits));

function mix(v, a, b, c, d, x, y) {
  v[a] = (v[a] + v[b] + x) | 0;
  v[d] = turn(v[d] ^ v[a], 16);
  v[c] = (v[c] + v[d]) | 0;
  v[b] = turn(v[b] ^ v[c], 12);
  v[a] = (v[a] + v[b] + y) | 0;
  v[d] = turn(v[d] ^ v[a], 8);
  v[c] = (v[c] + v[d]) | 0;
  v[b] = turn(v[b] ^ v[c], 7);
}

/** Return the 8 words that one block gives; the upper half is not needed for 32 bytes of output. */
function compress(chain, words, counter, length, flags) {
  const v = [...chain, ...IV.slice(0, 4), counter, 0, length, flags];
  let m = words;
  for (let round = 0; round < 7; round += 1) {
    mix(v, 0, 4, 8, 12, m[0], m[1]);
    mix(v, 1, 5, 9, 13, m[2], m[3]);
    mix(v, 2, 6, 10, 14, m[4], m[5]);
    mix(v, 3, 7, 11, 15, m[6], m[7]);
    mix(v, 0, 5, 10, 15, m[8], m[9]);
    mix(v, 1, 6, 11, 12, m[10], m[11]);
    mix(v, 2, 7, 8, 13, m[12], m[13]);
    mix(v, 3, 4, 9, 14, m[14], m[15]);
    m = ORDER.map((place) => m[place]);
  }
  return v.slice(0, 8).map((word, place) => word ^ v[place + 8]);
}

function wordsOf(bytes, from, to) {
  const words = new Array(16).fill(0);
  for (let at = from; at < to; at += 1) words[(at - from) >> 2] |= bytes[at] << (8 * ((at - from) & 3));
  return words;
}

function chunk(bytes, from, to, counter, root) {
  let chain = IV;
  for (let at = from; ; at += BLOCK) {
    const end = Math.min(at + BLOCK, to);
    const last = end >= to;
    const flags = (at === from ? CHUNK_START : 0) | (last ? CHUNK_END | root : 0);
    chain = compress(chain, wordsOf(bytes, at, end), counter, end - at, flags);
    if (last) return chain;
  }
}

function tree(bytes, from, to, root) {
  const size = to - from;
  if (size <= CHUNK) return chunk(bytes, from, to, from / CHUNK, root);
  let left = CHUNK;
  while (left * 2 < size) left *= 2;
  const words = [...tree(bytes, from, from + left, 0), ...tree(bytes, from + left, to, 0)];
  return compress(IV, words, 0, BLOCK, PARENT | root);
}

/** Return the 32-byte hash of bytes. */
export function blake3(bytes) {
  const out = new Uint8Array(32);
  tree(bytes, 0, bytes.length, ROOT).forEach((word, place) => {
    for (let byte = 0; byte < 4; byte += 1) out[place * 4 + byte] = (word >>> (8 * byte)) & 255;
  });
  return out;
}
