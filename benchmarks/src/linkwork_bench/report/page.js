"use strict";
// tables are sorted by a click on a head, numbers by value
document.querySelectorAll("table").forEach(table => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    const body = table.tBodies[0];
    const key = row => {
      const cell = row.cells[k];
      return cell.dataset.sort === undefined ? cell.textContent.trim() : parseFloat(cell.dataset.sort);
    };
    const order = (a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const less = typeof x === "number" && typeof y === "number" ? x - y
        : String(x).localeCompare(String(y), "en", {numeric: true});
      return up ? less : -less;
    };
    body.append(...[...body.rows].sort(order));
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
  }));
});

// filters: what belongs to a robot or method that is not chosen disappears, from tables and plots alike
const search = document.getElementById("search");
const filters = [...document.querySelectorAll(".filter")];
function apply() {
  const chosen = {};
  filters.forEach(f => {
    const boxes = [...f.querySelectorAll("input")], on = boxes.filter(b => b.checked);
    chosen[f.dataset.kind] = on.length === boxes.length ? null : new Set(on.map(b => b.value));
    f.querySelector("summary b").textContent = on.length === boxes.length ? "" : `${on.length} of ${boxes.length}`;
  });
  const hidden = (element, kind) => chosen[kind] && element.dataset[kind] && !chosen[kind].has(element.dataset[kind]);
  document.querySelectorAll("[data-robot], [data-method]").forEach(element =>
    element.classList.toggle("off", Boolean(hidden(element, "robot") || hidden(element, "method"))));
  const words = search.value.trim().toLowerCase();
  if (words) document.querySelectorAll("tbody tr").forEach(row => {
    if (!row.textContent.toLowerCase().includes(words)) row.classList.add("off");
  });
  else document.querySelectorAll("tbody tr:not([data-robot])").forEach(row => row.classList.remove("off"));
}
filters.forEach(f => {
  f.addEventListener("change", apply);
  f.querySelectorAll("[data-all]").forEach(button => button.addEventListener("click", () => {
    f.querySelectorAll("input").forEach(box => { box.checked = button.dataset.all === "1"; });
    apply();
  }));
});
search.addEventListener("input", apply);
document.addEventListener("click", event => filters.forEach(f => { if (!f.contains(event.target)) f.open = false; }));
document.getElementById("reset").addEventListener("click", () => {
  document.querySelectorAll(".filter input").forEach(box => { box.checked = true; });
  search.value = "";
  apply();
});

// dark and light: as the system has it, until the reader says otherwise
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
