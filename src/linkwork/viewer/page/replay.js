"use strict";
// Draws the scene that stands in this page: links with light and shadow on a grid, arrows, and a bar to play with.
// No library: matrices are arrays of 16 numbers, columns first; quaternions are x, y, z, w.

const byId = (id) => document.getElementById(id);
const scene = JSON.parse(byId("scene").textContent);

// ---- vectors and matrices

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const times = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const length = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => times(a, 1 / Math.max(length(a), 1e-12));

function product(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++)
    for (let r = 0; r < 4; r++)
      out[4 * c + r] = a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
  return out;
}

function looking(eye, target, up) {
  const z = unit(sub(eye, target)), x = unit(cross(up, z)), y = cross(z, x);
  return new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0,
    -dot(x, eye), -dot(y, eye), -dot(z, eye), 1]);
}

function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1,
    0, 0, 2 * far * near / (near - far), 0]);
}

function parallel(half, near, far) {
  return new Float32Array([1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, 2 / (near - far), 0,
    0, 0, (far + near) / (near - far), 1]);
}

// columns x, y, z of a frame, its origin, and how much each column is stretched
function framed(x, y, z, p, s = [1, 1, 1]) {
  return new Float32Array([x[0] * s[0], x[1] * s[0], x[2] * s[0], 0, y[0] * s[1], y[1] * s[1], y[2] * s[1], 0,
    z[0] * s[2], z[1] * s[2], z[2] * s[2], 0, p[0], p[1], p[2], 1]);
}

function posed(p, q) {
  const [x, y, z, w] = q;
  return framed([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], p);
}

const moved = (p) => framed([1, 0, 0], [0, 1, 0], [0, 0, 1], p);

function along(p, direction, thickness, extent) {
  const z = unit(direction), x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z));
  return framed(x, cross(z, x), z, p, [thickness, thickness, extent]);
}

// ---- the data

async function bytes() {
  const text = byId("data").textContent.trim();
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

const TYPES = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, i2: Int16Array, i1: Int8Array, u1: Uint8Array };
const view = (buffer, [kind, offset, count]) => new TYPES[kind](buffer, offset, count);

// ---- shaders

const VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
uniform mat4 model, camera, light;
uniform mat3 turn;
out vec3 world, direction, local;
out vec4 lit;
invariant gl_Position;
void main() {
  vec4 p = model * vec4(position, 1.0);
  world = p.xyz; direction = turn * normal; local = position;
  lit = light * p;
  gl_Position = camera * p;
}`;

const SHADOW = `
uniform highp sampler2DShadow shadow;
uniform float softness;
float brightness(vec4 lit, float slope) {
  if (softness <= 0.0) return 1.0;
  vec3 p = lit.xyz / lit.w * 0.5 + 0.5;
  if (any(lessThan(p.xy, vec2(0.0))) || any(greaterThan(p.xy, vec2(1.0))) || p.z > 1.0) return 1.0;
  float sum = 0.0;
  for (int i = -1; i <= 1; i++)
    for (int j = -1; j <= 1; j++)
      sum += texture(shadow, vec3(p.xy + vec2(i, j) * softness, p.z - 0.0015 * slope));
  return sum / 9.0;
}`;

const SURFACE = `#version 300 es
precision highp float;
in vec3 world, direction, local;
in vec4 lit;
uniform vec4 colour;
uniform vec3 eye, sun;
uniform float quartered, flatness;
${SHADOW}
out vec4 pixel;
void main() {
  vec3 n = normalize(direction), v = normalize(eye - world);
  if (dot(n, v) < 0.0) n = -n;
  vec3 base = pow(colour.rgb, vec3(2.2));
  if (quartered > 0.5) base = (local.x * local.y * local.z > 0.0) ? vec3(0.02) : vec3(0.9);
  float facing = dot(n, sun);
  float open = brightness(lit, 1.0 + 3.0 * (1.0 - abs(facing)));
  vec3 sky = mix(vec3(0.30, 0.29, 0.28), vec3(0.62, 0.66, 0.72), n.z * 0.5 + 0.5);
  vec3 back = vec3(0.10, 0.12, 0.16) * max(dot(n, normalize(vec3(-sun.xy, 0.25))), 0.0);
  vec3 shade = base * (sky + back + vec3(1.25, 1.20, 1.12) * max(facing, 0.0) * open);
  vec3 h = normalize(sun + v);
  shade += vec3(0.22) * pow(max(dot(n, h), 0.0), 48.0) * open;
  shade += vec3(0.10, 0.11, 0.13) * pow(1.0 - max(dot(n, v), 0.0), 4.0);
  shade = mix(shade, base, flatness);
  shade = shade / (1.0 + 0.18 * shade) * 1.06;
  pixel = vec4(pow(shade, vec3(1.0 / 2.2)), colour.a);
}`;

const GROUND = `#version 300 es
precision highp float;
in vec3 world, direction, local;
in vec4 lit;
uniform vec3 eye, centre, ink;
uniform vec4 floorTint;
uniform float cell, reach;
${SHADOW}
out vec4 pixel;
float lines(vec2 p, float width) {
  vec2 d = fwidth(p), g = abs(fract(p - 0.5) - 0.5) / max(d, vec2(1e-6));
  return (1.0 - min(min(g.x, g.y) / width, 1.0)) * (1.0 - smoothstep(0.2, 0.6, max(d.x, d.y)));
}
void main() {
  float fade = 1.0 - smoothstep(0.25, 1.0, length(world.xy - centre.xy) / reach);
  float grid = max(0.28 * lines(world.xy / cell, 1.1), 0.62 * lines(world.xy / (5.0 * cell), 1.4));
  float dark = (1.0 - brightness(lit, 1.0)) * 0.34;
  vec3 tint = mix(floorTint.rgb, ink, grid);
  float cover = max(floorTint.a, grid) * fade;
  tint = mix(tint, vec3(0.0), dark / max(dark + cover * (1.0 - dark), 1e-3));
  pixel = vec4(tint, (dark + cover * (1.0 - dark)) * fade);
}`;

const DEPTH = `#version 300 es
precision mediump float;
void main() {}`;

const NUMBER = `#version 300 es
precision highp float;
uniform vec4 colour;
out vec4 pixel;
void main() {
  float high = gl_FragCoord.z * 255.0, low = fract(high) * 255.0;
  pixel = colour.a > 0.0 ? colour : vec4(floor(high) / 255.0, floor(low) / 255.0, fract(low), 1.0);
}`;

// colours of vertices, for when time is short: of bodies, and of the floor with its grid
const PLAIN = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
uniform mat4 model, camera;
uniform mat3 turn;
uniform vec4 colour;
uniform vec3 eye, sun;
uniform float flatness;
out mediump vec4 shade;
void main() {
  vec4 p = model * vec4(position, 1.0);
  vec3 n = turn * normal;
  if (dot(n, eye - p.xyz) < 0.0) n = -n;
  float light = mix(0.48 + 0.18 * n.z + 1.2 * max(dot(n, sun), 0.0), 1.0, flatness);
  shade = vec4(colour.rgb * sqrt(light), colour.a);
  gl_Position = camera * p;
}`;

const PLAIN_GROUND = `#version 300 es
layout(location = 0) in vec3 position;
uniform mat4 model, camera;
uniform vec3 back, centre;
uniform vec4 floorTint;
uniform float reach;
out mediump vec4 shade;
void main() {
  vec4 p = model * vec4(position, 1.0);
  float fade = 1.0 - smoothstep(0.25, 1.0, length(p.xy - centre.xy) / reach);
  shade = vec4(mix(back, floorTint.rgb, floorTint.a * fade), 1.0);
  gl_Position = camera * p;
}`;

const SHADE = `#version 300 es
precision mediump float;
in vec4 shade;
out vec4 pixel;
void main() { pixel = shade; }`;

// ---- drawing

class Painter {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, preserveDrawingBuffer: true });
    if (!gl) throw new Error("This page needs a browser that draws WebGL 2.");
    this.gl = gl; this.canvas = canvas;
    this.surface = this.program(VERTEX, SURFACE);
    this.ground = this.program(VERTEX, GROUND);
    this.depth = this.program(VERTEX, DEPTH);
    this.number = this.program(VERTEX, NUMBER);
    this.plain = this.program(PLAIN, SHADE);
    this.plainGround = this.program(PLAIN_GROUND, SHADE);
    this.shadowSize = 2048;
    this.shadowMap = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, this.shadowSize, this.shadowSize);
    for (const [key, value] of [[gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE], [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL],
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]]) gl.texParameteri(gl.TEXTURE_2D, key, value);
    this.shadowTarget = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowTarget);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadowMap, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.enable(gl.DEPTH_TEST);
    this.smooth = null;
  }

  // drawing begins: on the canvas, or with several samples per pixel beside it
  begin(samples) {
    const gl = this.gl, { width, height } = this.canvas;
    if (this.smooth && (this.smooth.width !== width || this.smooth.height !== height || !samples)) {
      gl.deleteFramebuffer(this.smooth.target); this.smooth.buffers.forEach((b) => gl.deleteRenderbuffer(b));
      this.smooth = null;
    }
    if (samples && !this.smooth) {
      const target = gl.createFramebuffer(), buffers = [];
      gl.bindFramebuffer(gl.FRAMEBUFFER, target);
      for (const [place, format] of [[gl.COLOR_ATTACHMENT0, gl.RGBA8], [gl.DEPTH_ATTACHMENT, gl.DEPTH_COMPONENT24]]) {
        const buffer = gl.createRenderbuffer();
        gl.bindRenderbuffer(gl.RENDERBUFFER, buffer);
        gl.renderbufferStorageMultisample(gl.RENDERBUFFER, Math.min(samples, gl.getParameter(gl.MAX_SAMPLES)), format, width, height);
        gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, buffer);
        buffers.push(buffer);
      }
      this.smooth = { width, height, target, buffers };
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.smooth ? this.smooth.target : null);
    gl.viewport(0, 0, width, height);
  }

  // drawing ends: what was drawn beside the canvas goes onto it
  end() {
    const gl = this.gl;
    if (!this.smooth) return;
    const { width, height } = this.canvas;
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  program(vertex, fragment) {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source); gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const at = {};
    for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
      const name = gl.getActiveUniform(program, k).name;
      at[name] = gl.getUniformLocation(program, name);
    }
    return { program, at };
  }

  // vertices as floats or as 16-bit fractions, normals as floats or bytes; triangles, and fewer for when time is short
  mesh(vertices, normals, faces, fewer = new faces.constructor(0)) {
    const gl = this.gl, vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    [vertices, normals].forEach((data, place) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      const kind = data instanceof Uint16Array ? gl.UNSIGNED_SHORT : data instanceof Int8Array ? gl.BYTE : gl.FLOAT;
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 3, kind, kind !== gl.FLOAT, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces.byteLength + fewer.byteLength, gl.STATIC_DRAW);
    gl.bufferSubData(gl.ELEMENT_ARRAY_BUFFER, 0, faces);
    gl.bufferSubData(gl.ELEMENT_ARRAY_BUFFER, faces.byteLength, fewer);
    gl.bindVertexArray(null);
    const all = { count: faces.length, from: 0 };
    return { vao, all, shape: gl.TRIANGLES, few: fewer.length ? { count: fewer.length, from: faces.byteLength } : all,
      kind: faces instanceof Uint32Array ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT };
  }

  // lines of a grid about the origin, in pieces
  grid(lines, pieces) {
    const vertices = [], faces = [], at = (k, n) => 2 * k / n - 1;
    for (let i = 0; i <= lines; i++)
      for (let k = 0; k <= pieces; k++) {
        if (k) { const n = vertices.length / 3; faces.push(n - 2, n, n - 1, n + 1); }
        vertices.push(at(i, lines), at(k, pieces), 0, at(k, pieces), at(i, lines), 0);
      }
    const normals = vertices.map((_, i) => Number(i % 3 === 2));
    return { ...this.mesh(new Float32Array(vertices), new Float32Array(normals), new Uint16Array(faces)), shape: this.gl.LINES };
  }

  // the surface that a profile of [radius, z] sweeps about z
  turned(profile, around = 16) {
    const vertices = [], normals = [], faces = [];
    for (let s = 0; s + 1 < profile.length; s++) {
      const [[r0, z0, n0], [r1, z1, n1]] = [profile[s], profile[s + 1]];
      const slope = unit([z1 - z0, 0, r0 - r1]), start = vertices.length / 3;
      for (let k = 0; k <= around; k++) {
        const c = Math.cos(2 * Math.PI * k / around), d = Math.sin(2 * Math.PI * k / around);
        for (const [r, z, n] of [[r0, z0, n0 || slope], [r1, z1, n1 || slope]]) {
          vertices.push(r * c, r * d, z); normals.push(n[0] * c, n[0] * d, n[2]);
        }
        if (k < around) { const i = start + 2 * k; faces.push(i, i + 2, i + 3, i, i + 3, i + 1); }
      }
    }
    return this.mesh(new Float32Array(vertices), new Float32Array(normals), new Uint16Array(faces));
  }

  ball() {
    const half = 8, profile = [];
    for (let k = 0; k <= half; k++) {
      const s = Math.sin(Math.PI * k / half), c = -Math.cos(Math.PI * k / half);
      profile.push([s, c, [s, 0, c]]);
    }
    return this.turned(profile);
  }

  draw(mesh) {
    const { count, from } = this.coarse ? mesh.few : mesh.all;
    this.gl.bindVertexArray(mesh.vao);
    this.gl.drawElements(mesh.shape, count, mesh.kind, from);
    this.drawn += count / 3;
  }

  use(which, values) {
    const gl = this.gl;
    gl.useProgram(which.program);
    for (const [name, value] of Object.entries(values)) {
      const at = which.at[name];
      if (at === undefined) continue;
      if (typeof value === "number") gl.uniform1f(at, value);
      else if (value.length === 16) gl.uniformMatrix4fv(at, false, value);
      else if (value.length === 9) gl.uniformMatrix3fv(at, false, value);
      else if (value.length === 4) gl.uniform4fv(at, value);
      else gl.uniform3fv(at, value);
    }
  }
}

// rotation part of a matrix, for normals of bodies that are not stretched; otherwise its columns made unit
function turning(m) {
  const out = new Float32Array(9);
  for (let c = 0; c < 3; c++) {
    const n = Math.hypot(m[4 * c], m[4 * c + 1], m[4 * c + 2]) || 1;
    for (let r = 0; r < 3; r++) out[3 * c + r] = m[4 * c + r] / n;
  }
  return out;
}

// ---- the robot over time

class Motion {
  constructor(buffer) {
    this.t = view(buffer, scene.t);
    this.positions = view(buffer, scene.positions);
    this.quaternions = view(buffer, scene.quaternions);
    this.com = view(buffer, scene.com);
    this.ends = view(buffer, scene.ends);
    this.forces = scene.forces ? view(buffer, scene.forces) : null;
    this.active = view(buffer, scene.active);
    this.normals = scene.normals ? view(buffer, scene.normals) : null;
    this.links = scene.links.length; this.constraints = scene.constraints.length;
    this.duration = this.t[this.t.length - 1];
    this.pushing = this.loopForces = !!this.forces;
  }

  // the two states around a time, and the share of the second
  around(time) {
    const t = this.t;
    let low = 0, high = t.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (t[middle] <= time) low = middle; else high = middle; }
    if (t.length === 1) return [0, 0, 0];
    return [low, high, Math.min(Math.max((time - t[low]) / (t[high] - t[low]), 0), 1)];
  }

  mixed(array, width, index, [k, n, s]) {
    const out = [], stride = array.length / this.t.length, a = k * stride + width * index, b = n * stride + width * index;
    for (let i = 0; i < width; i++) out.push(array[a + i] * (1 - s) + array[b + i] * s);
    return out;
  }

  quaternion(link, [k, n, s]) {
    const a = 4 * (k * this.links + link), b = 4 * (n * this.links + link), Q = this.quaternions;
    let d = 0;
    for (let i = 0; i < 4; i++) d += Q[a + i] * Q[b + i];
    const out = [], sign = d < 0 ? -1 : 1;
    for (let i = 0; i < 4; i++) out.push(Q[a + i] * (1 - s) + sign * Q[b + i] * s);
    const size = Math.hypot(...out);
    return out.map((x) => x / size);
  }

  at(time) {
    const where = this.around(time), links = [];
    for (let l = 0; l < this.links; l++) links.push(posed(this.mixed(this.positions, 3, l, where), this.quaternion(l, where)));
    const constraints = [];
    for (let c = 0; c < this.constraints; c++) {
      const ends = this.mixed(this.ends, 6, c, where);
      constraints.push({ a: ends.slice(0, 3), b: ends.slice(3), contact: scene.constraints[c].contact,
        active: this.active[where[0] * this.constraints + c] > 0, slips: this.active[where[0] * this.constraints + c] === 2,
        friction: scene.constraints[c].friction, normal: this.normals ? this.mixed(this.normals, 3, c, where) : null,
        force: this.forces ? this.mixed(this.forces, 3, c, where) : [0, 0, 0] });
    }
    return { links, constraints, com: this.mixed(this.com, 3, 0, where) };
  }
}

// ---- the page

const THEMES = {
  light: { back: [0.933, 0.945, 0.957], ink: [0.35, 0.40, 0.46], floor: [0.985, 0.988, 0.992, 0.75] },
  dark: { back: [0.071, 0.086, 0.110], ink: [0.42, 0.48, 0.56], floor: [0.115, 0.135, 0.165, 0.85] },
};
const GRID = 24;  // cells of the plain grid, to every side
const OPENING = 0.6;  // the angle that the camera sees, from top to bottom
const FORCE = [0.92, 0.36, 0.12, 1], LOOP = [0.55, 0.30, 0.85, 1], CONTACT = [0.12, 0.62, 0.42, 1], SLIP = [0.90, 0.72, 0.10, 1];
const AXES = [[0.86, 0.20, 0.22, 1], [0.25, 0.66, 0.28, 1], [0.20, 0.42, 0.90, 1]];
const ICONS = { play: '<svg viewBox="0 0 10 10"><path d="M1.5 0 9.5 5 1.5 10z"/></svg>',
  pause: '<svg viewBox="0 0 10 10"><path d="M1 0h3v10H1zM6 0h3v10H6z"/></svg>' };

async function main() {
  const buffer = await bytes(), motion = scene.live ? await Live.from(buffer) : new Motion(buffer), painter = new Painter(byId("view")), gl = painter.gl;
  const surfaces = new Map(), surface = (p) => {  // what several parts share is one mesh
    const key = p.vertices[1], arrays = () => [p.vertices, p.normals, p.faces].map((place) => view(buffer, place));
    if (!surfaces.has(key)) surfaces.set(key, painter.mesh(...arrays(), coarser(...arrays())));
    return surfaces.get(key);
  };
  const parts = scene.parts.map((p) => ({ ...p, mesh: surface(p),
    place: framed([1, 0, 0], [0, 1, 0], [0, 0, 1], p.low, p.span) }));
  const shaft = painter.turned([[0, 0], [1, 0], [1, 1], [0, 1]]), cone = painter.turned([[0, 0], [1, 0], [0, 1]]);
  const ball = painter.ball();
  const plane = painter.mesh(new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]),
    new Float32Array([0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]), new Uint16Array([0, 1, 2, 0, 2, 3]));
  const disc = painter.turned([[0, 0], [0.25, 0], [0.4, 0], [0.6, 0], [0.8, 0], [1, 0]], 48), grid = painter.grid(2 * GRID, 12);
  const size = scene.size, start = motion.at(0).com;
  const shown = { links: true, inertias: false, joints: false, frames: false, constraints: motion.constraints > 0,
    forces: motion.pushing, "centre of mass": false, shadows: true, follow: travels() };
  let time = 0, playing = false, repeat = true, speed = 1, last = 0, forceScale = 1, drawn = 0, stale = true;
  const pace = new Pace();
  let fine = true, painted = 0, rested = 0;  // whether the last picture was the finest, and when it was painted
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let theme = dark.matches ? "dark" : "light";

  // arrows of contacts and of loops have scales of their own, for forces inside a linkage can be far larger: the weight
  // of the robot is 0.45 of its size long, unless the longest arrow would then be more than 0.6
  const perNewton = [false, true].map((contact) => {
    let largest = contact || !motion.forces ? 0.75 * (scene.weight || 0) : 0;
    if (motion.forces) for (let k = 0; 3 * k < motion.forces.length; k++)
      if (scene.constraints[k % motion.constraints].contact === contact)
        largest = Math.max(largest, length(motion.forces.subarray(3 * k, 3 * k + 3)));
    return 0.6 * size / (largest || 1);
  });
  function legend() {
    const kinds = [[true, "contacts"], [false, "loops"]].filter(([kind]) => (kind || motion.loopForces) && scene.constraints.some((c) => c.contact === kind));
    byId("legend").textContent = kinds.map(([kind, name]) =>
      `${name}: 0.1 m = ${(0.1 / (forceScale * perNewton[Number(kind)])).toPrecision(2) * 1} N`).join("\n");
  }

  // a grid of 0.1, 0.2, 0.5, 1, ... metres that suits the robot
  const decade = Math.pow(10, Math.floor(Math.log10(size / 8)));
  const cell = decade * [1, 2, 5, 10].find((n) => n * decade >= size / 8);

  // a robot that falls or walks away leaves any view that shows where it started: the camera goes with it
  function travels() {
    if (scene.live) return scene.live.travels;
    let far = 0;
    for (const t of motion.t) far = Math.max(far, length(sub(motion.at(t).com, start)));
    return far > 1.5 * size;
  }

  // what the motion fills, for the first view: all of it, or its beginning where the camera goes with the robot
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (const k of new Set(shown.follow ? [0] : [0, motion.t.length >> 1, motion.t.length - 1])) {
    const links = motion.at(motion.t[k]).links;
    for (const p of parts) if (p.kind === "body" && p.link) for (let c = 0; c < 8; c++) {
      const corner = [0, 1, 2].map((i) => p.low[i] + ((c >> i) & 1) * p.span[i]), m = links[p.link];
      for (let i = 0; i < 3; i++) {
        const x = m[i] * corner[0] + m[4 + i] * corner[1] + m[8 + i] * corner[2] + m[12 + i];
        low[i] = Math.min(low[i], x); high[i] = Math.max(high[i], x);
      }
    }
  }
  const middle = low[0] < Infinity ? times(add(low, high), 0.5) : motion.at(0).com;
  const radius = low[0] < Infinity ? Math.max(length(sub(high, low)) / 2, 0.02) : size;
  const first = () => ({ target: [...middle], yaw: 0.62, pitch: 0.24, distance: radius * (motion.t.length > 1 ? 3.9 : 3.5) });
  let camera = first(), slack = [0, 0, 0];

  function matrices() {
    const { yaw, pitch, distance } = camera;
    const follow = shown.follow ? add(sub(motion.at(time).com, start), slack) : [0, 0, 0];
    const target = add(camera.target, follow);
    const eye = add(target, times([Math.cos(pitch) * Math.cos(yaw), Math.cos(pitch) * Math.sin(yaw), Math.sin(pitch)], distance));
    const near = distance / 100, far = distance * 60 + 20 * radius, lens = perspective(OPENING, canvas.width / canvas.height, near, far);
    const centre = add(middle, follow), sun = unit([0.72, -0.22, 1.05]);
    const spread = radius * 1.6 + length(sub(motion.at(time).com, centre));
    const light = product(parallel(spread, 0.1 * spread, 6 * spread), looking(add(centre, times(sun, 3 * spread)), centre, [0, 1, 0]));
    return { eye, target, sun, light, near, far, camera: product(lens, looking(eye, target, [0, 0, 1])) };
  }

  // everything that is drawn: mesh, matrix, colour, and how
  function items(state) {
    const out = [];
    for (const p of parts) {
      const wanted = p.kind === "body" ? shown.links : p.kind === "inertia" ? shown.inertias : shown.joints;
      if (!wanted) continue;
      const faint = p.kind === "inertia" ? 0.45 : p.kind === "body" && (shown.inertias || shown.joints) ? 0.28 : 1;
      out.push({ mesh: p.mesh, model: product(state.links[p.link], p.place), turn: turning(state.links[p.link]),
        colour: [...p.colour.slice(0, 3), p.colour[3] * faint], link: p.link, solid: p.kind === "body" });
    }
    const overlay = (mesh, model, colour, more = {}) => out.push({ mesh, model, turn: turning(model), colour, over: true, ...more });
    const arrow = (from, vector, thickness, colour) => {
      const long = length(vector), head = Math.min(4.5 * thickness, 0.5 * long), d = unit(vector);
      if (long < 0.3 * thickness) return;
      overlay(shaft, along(from, d, thickness, long - head), colour, { flat: 0.25 });
      overlay(cone, along(add(from, times(d, long - head)), d, 2.2 * thickness, head), colour, { flat: 0.25 });
    };
    if (shown.frames) for (let l = 0; l < motion.links; l++) {
      const m = state.links[l], p = [m[12], m[13], m[14]];
      for (let i = 0; i < 3; i++) arrow(p, times([m[4 * i], m[4 * i + 1], m[4 * i + 2]], (l ? 0.07 : 0.14) * size), 0.0028 * size, AXES[i]);
    }
    for (const c of state.constraints) {
      const colour = c.slips ? SLIP : c.contact ? CONTACT : LOOP;
      if (shown.constraints && c.active) {
        overlay(ball, framed([1, 0, 0], [0, 1, 0], [0, 0, 1], c.a, [0.016 * size, 0.016 * size, 0.016 * size]), colour);
        const gap = sub(c.b, c.a);
        if (c.friction && c.normal) {
          const n = unit(c.normal), high = 0.06 * size;  // the friction cone, with its tip at the contact
          overlay(cone, along(add(c.a, times(n, high)), times(n, -1), c.friction * high, high), [...colour.slice(0, 3), 0.3]);
        }
        if (!c.contact && length(gap) > 0.002 * size) overlay(shaft, along(c.a, gap, 0.005 * size, length(gap)), colour);
      }
      if (shown.forces && c.active && length(c.force) > 0)
        arrow(c.a, times(c.force, forceScale * perNewton[Number(c.contact)]), 0.0075 * size, c.contact ? FORCE : LOOP);
    }
    if (motion.grabbed) {
      const from = motion.held(), gap = sub(motion.grabbed.target, from);
      overlay(ball, framed([1, 0, 0], [0, 1, 0], [0, 0, 1], from, [0.014 * size, 0.014 * size, 0.014 * size]), FORCE);
      if (length(gap) > 0) overlay(shaft, along(from, gap, 0.004 * size, length(gap)), FORCE);
    }
    if (shown["centre of mass"]) {
      const r = 0.022 * size, flat = [state.com[0], state.com[1], scene.ground + 0.002 * size];
      overlay(ball, framed([1, 0, 0], [0, 1, 0], [0, 0, 1], state.com, [r, r, r]), [1, 1, 1, 1], { quartered: 1 });
      overlay(shaft, along(flat, [0, 0, 1], 0.02 * size, 0.001 * size), [0.1, 0.1, 0.12, 1]);
    }
    return out;
  }

  const wide = (p, r) => framed([1, 0, 0], [0, 1, 0], [0, 0, 1], p, [r, r, 1]), horizon = 7 * radius;
  function floor(view, colours, softness) {
    const centre = [view.target[0], view.target[1], scene.ground], model = wide(centre, horizon);
    painter.use(painter.ground, { ...view, model, turn: turning(model), softness, centre, ink: colours.ink,
      floorTint: colours.floor, cell, reach: horizon });
    painter.draw(plane);
  }
  function plainFloor(view, { back, floor, ink }) {
    const [x, y] = view.target, centre = [x, y, scene.ground], line = [0, 1, 2].map((i) => 0.72 * floor[i] + 0.28 * ink[i]);
    painter.use(painter.plainGround, { ...view, model: wide(centre, horizon), centre, reach: horizon, back, floorTint: floor });
    painter.draw(disc);
    const corner = [Math.round(x / cell) * cell, Math.round(y / cell) * cell, scene.ground];
    painter.use(painter.plainGround, { model: wide(corner, GRID * cell), reach: GRID * cell, floorTint: [...line, 1] });
    painter.draw(grid);
  }

  function paint(level) {
    resize(level.scale);
    painter.coarse = level.coarse; painter.drawn = 0;
    const shadows = shown.shadows && level.shadows;
    const state = motion.at(time), view = matrices(), all = items(state), colours = THEMES[theme];
    // what is near comes first, and hides the rest before it is shaded
    const ahead = unit(sub(view.target, view.eye)), distance = ({ model: m }) => dot(ahead, [m[12], m[13], m[14]]);
    const opaque = all.filter((i) => i.colour[3] > 0.99).sort((a, b) => distance(a) - distance(b)), faint = all.filter((i) => i.colour[3] <= 0.99);
    if (shadows) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, painter.shadowTarget);
      gl.viewport(0, 0, painter.shadowSize, painter.shadowSize);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.enable(gl.POLYGON_OFFSET_FILL); gl.polygonOffset(2, 4);
      painter.use(painter.depth, { camera: view.light, light: view.light });
      for (const i of all) { painter.use(painter.depth, { model: i.model, turn: i.turn }); painter.draw(i.mesh); }
      gl.disable(gl.POLYGON_OFFSET_FILL);
    }
    painter.begin(level.samples);
    gl.clearColor(...colours.back, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.bindTexture(gl.TEXTURE_2D, painter.shadowMap);
    const softness = shadows ? 1.8 / painter.shadowSize : 0;
    const shader = level.plain ? painter.plain : painter.surface;
    const surface = (i) => { painter.use(shader, { model: i.model, turn: i.turn, colour: i.colour,
      quartered: i.quartered || 0, flatness: i.flat || 0 }); painter.draw(i.mesh); };
    painter.use(shader, { ...view, softness });
    opaque.forEach(surface);
    gl.enable(gl.BLEND); gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthMask(false);
    if (level.plain) plainFloor(view, colours); else floor(view, colours, softness);
    if (faint.length) {
      // one layer of each transparent body: depth first, then colour where it is nearest
      gl.depthMask(true);
      painter.use(painter.depth, view);
      painter.use(shader, { ...view, softness });
      for (const solid of [false, true]) {
        const layer = faint.filter((i) => !!i.solid === solid);
        if (level.plain) { gl.enable(gl.CULL_FACE); layer.forEach(surface); gl.disable(gl.CULL_FACE); continue; }
        gl.colorMask(false, false, false, false);
        for (const i of layer) { painter.use(painter.depth, { model: i.model }); painter.draw(i.mesh); }
        gl.colorMask(true, true, true, true); gl.depthFunc(gl.LEQUAL); layer.forEach(surface); gl.depthFunc(gl.LESS);
      }
    }
    // what explains the motion shines through what hides it
    gl.depthMask(false); gl.depthFunc(gl.GREATER);
    painter.use(shader, { ...view, softness: 0 });
    for (const i of all) if (i.over) surface({ ...i, colour: [...i.colour.slice(0, 3), 0.4] });
    gl.depthFunc(gl.LESS); gl.depthMask(true); gl.disable(gl.BLEND);
    painter.end();
    drawn += 1; fine = level === LEVELS[0];
  }

  // which link is under a pixel: draw the links in colours that are their numbers, and read one
  const pixel = new Uint8Array(4);
  function numbered(x, y, colour) {
    const view = matrices(), ratio = canvas.width / canvas.clientWidth;
    gl.clearColor(0, 0, 0, 1); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    painter.use(painter.number, view);
    for (const i of items(motion.at(time))) if (i.solid) {
      painter.use(painter.number, { model: i.model, turn: i.turn, colour: colour(i.link + 1) });
      painter.draw(i.mesh);
    }
    gl.readPixels(Math.round(x * ratio), Math.round(canvas.height - y * ratio), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    stale = true;
    return pixel;
  }
  function pick(x, y) {
    const [low, high] = numbered(x, y, (n) => [(n & 255) / 255, (n >> 8) / 255, 0, 1]);
    return low + 256 * high - 1;
  }

  // how far from the camera's plane that link is there, and the place that is so far behind a pixel
  function depth(x, y) {
    const [high, middle, low] = numbered(x, y, () => [0, 0, 0, 0]), { near, far } = matrices();
    return far * near / (far - (high + (middle + low / 255) / 255) / 255 * (far - near));
  }
  function behind(x, y, far) {
    const { eye, target } = matrices(), ahead = unit(sub(target, eye)), right = unit(cross(ahead, [0, 0, 1]));
    const half = Math.tan(OPENING / 2), across = (2 * x / canvas.clientWidth - 1) * half * canvas.width / canvas.height;
    const up = times(cross(right, ahead), (1 - 2 * y / canvas.clientHeight) * half);
    return add(eye, times(add(ahead, add(times(right, across), up)), far));
  }

  // where a point of the world is on the page
  function project(p) {
    const m = matrices().camera, at = [0, 1, 3].map((r) => m[r] * p[0] + m[4 + r] * p[1] + m[8 + r] * p[2] + m[12 + r]);
    return [(at[0] / at[2] + 1) / 2 * canvas.clientWidth, (1 - at[1] / at[2]) / 2 * canvas.clientHeight];
  }

  // -- controls

  const canvas = byId("view"), scrub = byId("scrub"), play = byId("play");
  const seconds = (x) => x.toFixed(2);

  function refresh() {
    scrub.value = time;
    byId("clock").textContent = scene.live ? `${seconds(motion.time)} s` : `${seconds(time)} / ${seconds(motion.duration)} s`;
    stale = true;
  }
  function seek(to) { time = Math.min(Math.max(to, 0), motion.duration); refresh(); }
  function setPlaying(on) {
    if (on && time >= motion.duration) time = 0;
    playing = on; last = 0;
    play.innerHTML = on ? ICONS.pause : ICONS.play;
    play.setAttribute("aria-label", on ? "Pause" : "Play");
  }
  function setTheme(name) { theme = name; document.documentElement.dataset.theme = name; stale = true; }
  function resize(scale) {
    const ratio = scale * (scale < 1 ? 1 : Math.min(window.devicePixelRatio || 1, 2));
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((x) => Math.max(Math.round(x * ratio), 1));
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
  }

  document.title = scene.title;
  byId("name").textContent = scene.title;
  byId("facts").textContent = scene.facts;
  if (scene.notes.length) { byId("notes").textContent = scene.notes.join(" "); byId("notes").hidden = false; }
  for (const name of Object.keys(shown)) {
    if (name === "forces" && !motion.pushing) continue;
    if (name === "constraints" && !motion.constraints) continue;
    if (name === "follow" && motion.t.length < 2 && !scene.live) continue;
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox"; box.checked = shown[name]; box.id = `show-${name.replaceAll(" ", "-")}`;
    box.onchange = () => { shown[name] = box.checked; stale = true; };
    label.append(box, name[0].toUpperCase() + name.slice(1));
    byId("toggles").append(label);
  }
  if (motion.pushing) {
    byId("scaling").hidden = false;
    byId("scale").oninput = (e) => { forceScale = Math.pow(10, Number(e.target.value) / 2); legend(); stale = true; };
    legend();
  }
  // on a phone the panel would cover the robot: it opens when asked for
  const narrow = window.matchMedia("(max-width: 640px)"), panel = byId("panel"), menu = byId("menu");
  const open = (yes) => { panel.classList.toggle("closed", !yes); menu.setAttribute("aria-expanded", yes); menu.classList.toggle("on", yes); };
  menu.onclick = () => open(panel.classList.contains("closed"));
  narrow.addEventListener("change", (e) => open(!e.matches));
  open(!narrow.matches);
  byId("reset").onclick = () => { camera = first(); stale = true; };
  byId("theme").onclick = () => setTheme(theme === "dark" ? "light" : "dark");
  dark.addEventListener("change", (e) => setTheme(e.matches ? "dark" : "light"));
  if (motion.t.length > 1) {
    byId("bar").hidden = false;
    scrub.max = motion.duration;
    scrub.oninput = () => { setPlaying(false); seek(Number(scrub.value)); };
    play.onclick = () => setPlaying(!playing);
    byId("speed").onchange = (e) => { speed = Number(e.target.value); };
    byId("loop").onclick = (e) => { repeat = !repeat; e.target.classList.toggle("on", repeat); };
    for (const [t, kind, contact] of scene.events.slice(0, 400)) {
      const tick = document.createElement("i");
      tick.style.left = `${100 * t / motion.duration}%`; tick.title = `${seconds(t)} s ${kind} ${contact}`;
      if (kind === "lift-off") tick.className = "off";
      byId("ticks").append(tick);
    }
  }
  const again = () => { motion.restart(); slack = [0, 0, 0]; refresh(); };
  const report = scene.live ? offer(motion, again, pace) : null;
  if (scene.live) {
    byId("bar").hidden = false;
    play.onclick = () => setPlaying(!playing);
    byId("speed").onchange = (e) => { speed = Number(e.target.value); };
  }
  setPlaying(!!scene.live); setTheme(theme); refresh();

  const pointers = new Map();
  let travelled = 0, reach = 0;
  const turnBy = (dx, dy) => {
    camera.yaw -= dx * 0.008;
    camera.pitch = Math.min(Math.max(camera.pitch + dy * 0.008, -1.55), 1.55);
  };
  const panBy = (dx, dy) => {
    const { yaw, pitch } = camera, step = camera.distance * 0.62 / canvas.clientHeight;
    const right = [-Math.sin(yaw), Math.cos(yaw), 0];
    const up = [-Math.sin(pitch) * Math.cos(yaw), -Math.sin(pitch) * Math.sin(yaw), Math.cos(pitch)];
    camera.target = add(camera.target, add(times(right, -dx * step), times(up, dy * step)));
  };
  const zoomBy = (factor) => { camera.distance = Math.min(Math.max(camera.distance * factor, 0.05 * radius), 40 * radius); };
  canvas.oncontextmenu = (e) => e.preventDefault();
  canvas.onpointerdown = (e) => {
    canvas.setPointerCapture(e.pointerId); pointers.set(e.pointerId, e); travelled = 0; byId("picked").hidden = true;
    let link = -1;
    if (scene.live && pointers.size === 1 && e.button === 0 && !e.shiftKey) link = pick(e.clientX, e.clientY);
    if (link < 1) return;
    reach = depth(e.clientX, e.clientY);
    motion.grab(link, behind(e.clientX, e.clientY, reach));
  };
  canvas.onpointermove = (e) => {
    const before = pointers.get(e.pointerId);
    if (!before) return;
    const dx = e.clientX - before.clientX, dy = e.clientY - before.clientY;
    travelled += Math.abs(dx) + Math.abs(dy);
    if (motion.grabbed) { motion.grabbed.target = behind(e.clientX, e.clientY, reach); pointers.set(e.pointerId, e); stale = true; return; }
    if (pointers.size === 2) {
      const other = [...pointers.values()].find((p) => p.pointerId !== e.pointerId);
      const gap = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
      zoomBy(gap(before) / Math.max(gap(e), 1)); panBy(dx / 2, dy / 2);
    } else if (e.buttons & 6 || e.shiftKey) panBy(dx, dy);
    else turnBy(dx, dy);
    pointers.set(e.pointerId, e); stale = true;
  };
  canvas.onpointerup = canvas.onpointercancel = (e) => {
    pointers.delete(e.pointerId);
    if (motion.grabbed) { motion.release(); stale = true; }
    if (e.type !== "pointerup" || travelled > 4) return;
    const link = pick(e.clientX, e.clientY), label = byId("picked");
    label.hidden = link < 0;
    if (link < 0) return;
    const { name, joint, mass } = scene.links[link];
    label.textContent = [name, joint, `${mass.toPrecision(3)} kg`].filter(Boolean).join("\n");
    label.style.left = `${e.clientX}px`; label.style.top = `${e.clientY}px`;
  };
  canvas.addEventListener("wheel", (e) => {
    if (window !== window.top && !e.ctrlKey) return;  // within another page the wheel is for that one
    e.preventDefault(); zoomBy(Math.exp(e.deltaY * 0.0012)); stale = true;
  }, { passive: false });
  canvas.ondblclick = () => { camera = first(); stale = true; };
  document.onkeydown = (e) => {
    if (e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey) return;
    const [k, n] = motion.around(time), steps = motion.t;
    const actions = { " ": () => setPlaying(!playing), ArrowRight: () => seek(steps[n]),
      ArrowLeft: () => seek(time > steps[k] ? steps[k] : steps[Math.max(k - 1, 0)]),
      Home: () => seek(0), End: () => seek(motion.duration), r: byId("reset").onclick, d: byId("theme").onclick,
      l: () => byId("loop").click() };
    if (scene.live) Object.assign(actions, { Home: again, ArrowRight: null, ArrowLeft: null, End: null, l: null });
    if (actions[e.key] && motion.t.length > (scene.live || e.key === "r" || e.key === "d" ? 0 : 1)) { actions[e.key](e); e.preventDefault(); }
  };
  new ResizeObserver(() => { stale = true; }).observe(canvas);

  function frame(now) {
    if (playing && scene.live) {
      const before = motion.at().com;
      report(last ? motion.advance((now - last) / 1000, speed) : 0);
      // the camera stands still while a link is dragged, and then catches up
      slack = motion.grabbed ? add(slack, sub(before, motion.at().com)) : times(slack, last ? Math.exp((last - now) / 300) : 1);
      last = now;
      refresh();
    } else if (playing) {
      if (last) time += speed * (now - last) / 1000;
      last = now;
      if (time >= motion.duration) {
        if (repeat) time %= motion.duration; else { time = motion.duration; setPlaying(false); }
      }
      refresh();
    }
    // only frames that follow each other say how long one takes; a picture that stands still is the finest
    if (stale) {
      stale = false;
      if (painted) pace.frame(now - painted);
      paint(LEVELS[pace.level]);
      painted = rested = now;
    } else {
      painted = 0; pace.forget();
      if (!fine && now - rested > 300) paint(LEVELS[0]);
    }
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);

  // for scripts and tests: what is there, and where it is now
  window.linkwork = { scene, seek, play: () => setPlaying(true), pause: () => setPlaying(false),
    get time() { return time; }, get playing() { return playing; }, get drawn() { return drawn; },
    get camera() { return camera; }, state: () => motion.at(time), pick, project, pace, live: scene.live ? motion : null,
    get triangles() { return painter.drawn; }, get fine() { return fine && !stale; } };
}

main().catch((problem) => {
  const text = document.createElement("div");
  text.className = "fatal"; text.textContent = String(problem.message || problem);
  document.body.append(text);
  console.error(problem);
});
