
// ---- the robot simulated: a module of WebAssembly does the steps, and says where links are

const SHORTEST = 1 / 240, BUDGET = 0.6;  // seconds of the shortest frame, and the share of frames that is for steps
const TURN = 0.06, PARTS = 16;  // radians that a joint turns in a part of a step, and the most parts of a step
const LONGEST = 0.1;  // seconds that are simulated between two frames at most

class Live extends Motion {
  static async from(buffer) {
    const math = { fmod: (a, b) => a % b };
    for (const name of Object.getOwnPropertyNames(Math)) math[name] = Math[name];
    const { instance } = await WebAssembly.instantiate(view(buffer, scene.live.module), { math });
    return new Live(buffer, instance.exports);
  }

  constructor(buffer, run) {
    super(buffer);
    const live = scene.live, memory = new Float64Array(run.memory.buffer);
    this.run = run; this.dt = live.dt; this.pushing = live.touching.length > 0; this.loopForces = false;
    this.port = Object.fromEntries(Object.entries(live.ports).map(([n, [at, size]]) => [n, memory.subarray(at, at + size)]));
    this.pairs = live.state.map((n) => [this.port[n], this.port[n + "'"]]);
    this.applied = {};
    this.restart();
  }

  // the state of the first moment; gravity, damping and joint forces stay as they are set
  restart() {
    for (const [name, values] of Object.entries(scene.live.inputs)) this.port[name].set(this.applied[name] || values);
    if (scene.live.warm.length) {
      this.run.step();
      for (const name of scene.live.warm) this.port[name].set(this.port[name + "'"]);
    }
    this.time = 0; this.owed = 0; this.failed = false; this.grabbed = null;
    this.run.poses(); this.now = null;
  }

  set(name, k, value) {
    this.applied[name] ||= [...this.port[name]];
    this.applied[name][k] = value; this.port[name][k] = value;
  }

  // the time of one step, in parts where something turns fast; a state that is not one is not taken
  step() {
    const parts = Math.min(Math.ceil(this.fastest() * this.dt / TURN), PARTS) || 1;
    this.port.dt[0] = this.dt / parts;
    for (let k = 0; k < parts; k++) if (!this.part()) return false;
    this.port.dt[0] = this.dt;
    this.time += this.dt; this.now = null;
    return true;
  }

  fastest() {
    let most = 0;
    for (const x of this.port.v) most = Math.max(most, Math.abs(x));
    return most;
  }

  part() {
    if (this.grabbed) this.pull();
    this.run.step();
    for (const name of ["q'", "v'"]) for (const x of this.port[name]) if (!(Math.abs(x) < 1e6)) { this.failed = true; return false; }
    for (const [now, next] of this.pairs) now.set(next);
    // what is faster than parts can follow is slowed as a whole: velocities that keep loops closed still do
    const over = this.fastest() * this.dt / (TURN * PARTS);
    if (over > 1) this.port.v.forEach((x, k) => { this.port.v[k] = x / over; });
    if (this.grabbed) this.run.poses();
    return true;
  }

  // the steps of a frame after some seconds, or as many of them as there is time for; how many they were
  advance(seconds, speed) {
    const began = performance.now(), most = 1000 * BUDGET * Math.max(seconds, SHORTEST);
    let steps = 0;
    if (this.grabbed) this.feel();
    this.owed = Math.min(this.owed + speed * seconds, LONGEST);
    while (this.owed >= this.dt && !this.failed && performance.now() - began < most) { if (this.step()) steps += 1; this.owed -= this.dt; }
    if (this.owed >= this.dt) this.owed = 0;
    this.run.poses(); this.now = null;
    return steps;
  }

  at() {
    if (this.now) return this.now;
    const R = this.port["rotations'"], p = this.port["positions'"], links = [];
    const three = (array, k) => [array[3 * k], array[3 * k + 1], array[3 * k + 2]];
    for (let l = 0; l < this.links; l++) links.push(framed(three(R, 3 * l), three(R, 3 * l + 1), three(R, 3 * l + 2), three(p, l)));
    const ends = this.port["ends'"], touches = this.port["touches'"], constraints = [];
    const loops = scene.constraints.length - scene.live.touching.length;
    for (let c = 0; c < loops; c++)
      constraints.push({ a: three(ends, 2 * c), b: three(ends, 2 * c + 1), contact: scene.constraints[c].contact, active: true, force: [0, 0, 0] });
    scene.live.touching.forEach((k, c) => {
      const force = this.time > 0 ? three(this.port["forces'"], k) : [0, 0, 0], a = three(touches, c);
      constraints.push({ a, b: a, contact: true, active: length(force) > 0, force });
    });
    return this.now = { links, constraints, com: three(this.port["com'"], 0) };
  }

  // -- dragging: a spring between a place on a link and the mouse

  grab(link, place) {
    const m = this.at().links[link], d = sub(place, [m[12], m[13], m[14]]);
    const inside = [0, 1, 2].map((c) => m[4 * c] * d[0] + m[4 * c + 1] * d[1] + m[4 * c + 2] * d[2]);
    this.grabbed = { link, inside, target: place, before: place, at: 6 * scene.live.pushed.indexOf(link) };
    this.feel();
  }

  release() {
    if (this.grabbed) this.port.push.fill(0);
    this.grabbed = null;
  }

  held() {
    const { link, inside } = this.grabbed, R = this.port["rotations'"], p = this.port["positions'"];
    return [0, 1, 2].map((i) => p[3 * link + i] + R[9 * link + i] * inside[0] + R[9 * link + 3 + i] * inside[1] + R[9 * link + 6 + i] * inside[2]);
  }

  apply(force) {
    const { link, at } = this.grabbed, p = this.port["positions'"];
    const torque = cross(sub(this.held(), [p[3 * link], p[3 * link + 1], p[3 * link + 2]]), force);
    this.port.push.set([...force, ...torque], at);
  }

  // how far a force moves the place in a step, h^2 W: measured, by steps that are not taken
  feel() {
    const force = 10 * scene.live.mass, q = this.port.q, kept = q.slice(), columns = [];
    const moved = (push) => {
      this.apply(push); this.run.step();
      q.set(this.port["q'"]); this.run.poses();
      const place = this.held();
      q.set(kept); this.run.poses();
      return place;
    };
    const rest = moved([0, 0, 0]);
    for (const axis of [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
      columns.push(times(sub(moved(times(axis, force)), rest), 1 / (force * this.dt * this.dt)));
    this.grabbed.mobility = [0, 1, 2].map((i) => [0, 1, 2].map((j) => (columns[i][j] + columns[j][i]) / 2));
    this.port.push.fill(0);
  }

  // an implicit spring, f = k (target - p+) - d v+ with v+ = v + h W f: stable whatever it pulls
  pull() {
    const { stiffness: k, damping: d } = scene.live, h = this.port.dt[0], s = h * d + h * h * k, W = this.grabbed.mobility;
    const p = this.held(), v = times(sub(p, this.grabbed.before), 1 / h);
    const wanted = sub(times(sub(this.grabbed.target, p), k), times(v, d + h * k));
    const rows = [0, 1, 2].map((i) => [0, 1, 2].map((j) => s * W[i][j] + (i === j ? 1 : 0)));
    const inverse = [cross(rows[1], rows[2]), cross(rows[2], rows[0]), cross(rows[0], rows[1])];  // columns, times the determinant
    const det = dot(rows[0], inverse[0]);
    let force = [0, 1, 2].map((i) => (inverse[0][i] * wanted[0] + inverse[1][i] * wanted[1] + inverse[2][i] * wanted[2]) / det);
    const most = scene.live.strength, size = length(force);
    if (!(size < Infinity)) force = [0, 0, 0]; else if (size > most) force = times(force, most / size);
    this.grabbed.before = p; this.grabbed.force = force;
    this.apply(force);
  }
}

// sliders of what drives the mechanism, and the line that says how fast it goes
function offer(motion, again, pace) {
  const live = scene.live, panel = byId("panel");
  const slider = (into, id, text, low, high, value, unit, changed) => {
    const label = document.createElement("label"), name = document.createElement("span"), input = document.createElement("input");
    label.className = "slide"; input.type = "range"; input.id = id;
    input.min = low; input.max = high; input.step = (high - low) / 400 || 1; input.value = value;
    const show = () => { name.textContent = `${text}: ${Number(Number(input.value).toPrecision(3))} ${unit}`; };
    input.oninput = () => { changed(Number(input.value)); show(); };
    input.ondblclick = () => { input.value = value; input.oninput(); };
    show(); label.append(name, input); into.append(label);
    return input;
  };
  const g = live.inputs.gravity, size = length(g), down = size > 0 ? times(g, 1 / size) : [0, 0, -1];
  slider(panel, "gravity", "Gravity", -20, 20, size, "m/s\u00b2", (x) => times(down, x).forEach((y, k) => motion.set("gravity", k, y)));
  const own = live.inputs.damping;
  slider(panel, "damping", "Damping", 0, live.rubs, 0, "Nms", (x) => live.joints.forEach(({ at }) => motion.set("damping", at, own[at] + x)));
  if (live.joints.length) {
    const box = document.createElement("details"), head = document.createElement("summary"), none = document.createElement("button");
    head.textContent = "Joint forces"; none.textContent = "All zero"; none.id = "limp";
    box.append(head, none); panel.append(box);
    const inputs = live.joints.map(({ at, name, unit, most }) => slider(box, `force-${at}`, name, -most, most, 0, unit, (x) => motion.set("tau", at, x)));
    none.onclick = () => inputs.forEach((input) => input.ondblclick());
  }
  const rate = document.createElement("output"), button = document.createElement("button");
  rate.id = "rate"; button.id = "again"; button.textContent = "Start again"; button.title = "Start again (Home)";
  button.onclick = again;
  byId("track").replaceWith(rate); byId("loop").replaceWith(button);
  let frames = 0, steps = 0, since = performance.now();
  return (taken) => {
    const now = performance.now();
    frames += 1; steps += taken;
    if (motion.failed) rate.textContent = "This motion cannot be continued: start again.";
    else if (now - since > 500) {
      const seconds = (now - since) / 1000;
      rate.textContent = `${Math.round(frames / seconds)} frames/s, ${(steps * motion.dt / seconds).toFixed(2)}x real time`;
      rate.title = pace.level ? "Drawn more simply, for sixty frames a second" : "";
      frames = 0; steps = 0; since = now;
    }
  };
}
