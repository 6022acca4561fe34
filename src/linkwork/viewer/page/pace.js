
// ---- how finely is drawn: as finely as sixty frames a second allow

// pixels of the canvas per pixel of the page, samples per pixel, and what is left out: shadows, triangles, highlights
const LEVELS = [
  { scale: 1, samples: 4, shadows: true, coarse: false, plain: false },
  { scale: 1, samples: 0, shadows: true, coarse: true, plain: false },
  { scale: 1, samples: 0, shadows: false, coarse: true, plain: true },
  { scale: 0.7, samples: 0, shadows: false, coarse: true, plain: true },
  { scale: 0.5, samples: 0, shadows: false, coarse: true, plain: true },
  { scale: 0.35, samples: 0, shadows: false, coarse: true, plain: true },
];
const LATE = 1000 / 56, FAR_TOO_LATE = 3 * LATE;  // milliseconds between frames
const WATCH = 500;  // milliseconds that a judgement needs, and two frames

// Chooses the level by the time between frames that follow each other. It goes down while they are late, and tries the
// next finer one after some seconds without, later the slower that one was; each failed try makes the next wait four times as long. Where even the coarsest
// level is as late as the finest, drawing is not what takes the time (or the display is slow): it draws finely.
class Pace {
  constructor() { this.level = 0; this.patience = 4000; this.calm = 0; this.means = []; this.fixed = false; this.forget(); }

  forget() { this.spans = []; this.watched = 0; }

  // the milliseconds since the frame before; whether the level changed
  frame(span) {
    this.spans.push(span); this.watched += span;
    const n = this.spans.length;
    if (this.fixed || n < 2 || this.watched < WATCH) return false;
    // the mean without the longest twentieth: a page that cleans up for a moment is no reason
    const kept = this.spans.sort((a, b) => a - b).slice(0, n - Math.floor(n / 20)), mean = kept.reduce((a, b) => a + b) / kept.length;
    const before = this.level, last = LEVELS.length - 1;
    if (mean > LATE) {
      if (this.tried) this.patience *= 4;
      if (this.level < last) this.level = Math.min(this.level + (mean > FAR_TOO_LATE ? 2 : 1), last);
      else if (mean > 0.8 * this.means[0]) { this.level = 0; this.fixed = true; }
      for (let k = before; k < this.level; k++) this.means[k] = mean;
      this.calm = 0; this.tried = false;
    } else {
      this.calm += this.watched; this.tried = false;
      if (this.level > 0 && this.calm > this.patience * this.means[this.level - 1] / LATE) { this.level -= 1; this.calm = 0; this.tried = true; }
    }
    this.forget();
    return this.level !== before;
  }
}

// the same surface with fewer triangles, over the same vertices (fractions of its box, 16 bits): those of a cell of a
// grid whose normals point to the same side become one
function coarser(vertices, normals, faces, cells = 4) {
  const chosen = new Map(), of = new Uint32Array(vertices.length / 3), out = [];
  for (let k = 0; k < of.length; k++) {
    let key = 0;
    for (let i = 3 * k; i < 3 * k + 3; i++) key = 2 * (key * cells + Math.floor(vertices[i] * cells / 65536)) + Number(normals[i] < 0);
    if (!chosen.has(key)) chosen.set(key, k);
    of[k] = chosen.get(key);
  }
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [of[faces[f]], of[faces[f + 1]], of[faces[f + 2]]];
    if (a !== b && b !== c && c !== a) out.push(a, b, c);
  }
  return new faces.constructor(out);
}
