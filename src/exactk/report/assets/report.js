"use strict";
// The page is complete without this. It adds sorting, buttons to copy and the choice of theme, and
// reads nothing but the page itself.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- Theme: as the system says, until somebody chooses.
  const themeButton = document.getElementById("theme");
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const nameTheme = () => {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", `${themeButton.textContent} theme`);
  };
  nameTheme();
  systemDark.addEventListener("change", nameTheme);
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });

  // Paper has no folds: panels that are folded away are printed.
  addEventListener("beforeprint", () => { for (const fold of all("details.rest")) fold.open = true; });

  // ---- Sorting: numbers as numbers, what is missing last either way.
  const valueIn = (row, place, numeric) => {
    const cell = row.cells[place];
    if (!numeric) return cell.textContent.trim().toLowerCase();
    return cell.dataset.v ? Number(cell.dataset.v) : null;
  };
  const sortBy = (heading, place) => {
    const table = heading.closest("table");
    const numeric = heading.dataset.sort === "number";
    const down = heading.getAttribute("aria-sort") === "ascending";
    const rows = [...table.tBodies[0].rows].map((row) => [valueIn(row, place, numeric), row]);
    const missing = ([value]) => value === null || value === "";
    rows.sort((a, b) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const order = numeric ? a[0] - b[0] : a[0].localeCompare(b[0], undefined, { numeric: true });
      return down ? -order : order;
    });
    for (const other of all("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  for (const heading of all("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortBy(heading, heading.cellIndex));
  }

  // On paper the rows of a wide table wrap, and each number needs the name of its column. Numbers do
  // not break and names do; a letter is 6 units wide there, and paper 680.
  const [LETTER, GAP, NAME, PAPER] = [6, 10, 90, 680];
  const breadth = (cells) => Math.max(...cells.map((cell) => {
    const text = cell.textContent;
    if (cell.matches(".number, .plain tbody td")) return GAP + LETTER * text.length;
    const words = text.split(/\s+/).map((word) => word.length);
    return GAP + Math.min(LETTER * Math.max(...words), NAME);
  }));
  for (const table of all("main table")) {
    const [heads, ...more] = table.tHead.rows;
    const rows = [...table.tBodies[0].rows];
    const columns = [...heads.cells].map((top, i) => [top, ...rows.map((row) => row.cells[i] ?? top)]);
    const whole = columns.reduce((sum, cells) => sum + breadth(cells), 0);
    if (more.length || whole <= PAPER) continue;
    const names = [...heads.cells].map((cell) => cell.textContent);
    table.classList.add("spread");
    for (const cell of all("tbody td", table)) cell.dataset.of = names[cell.cellIndex];
  }

  // ---- Copying: by the clipboard where it is allowed, else as a hand would.
  const spoken = document.createElement("p");
  spoken.className = "unseen";
  spoken.setAttribute("role", "status");
  const copyByHand = (element) => {
    const chosen = getSelection();
    chosen.selectAllChildren(element);
    const done = document.execCommand("copy");
    if (done) chosen.removeAllRanges();
    return done;
  };
  const copy = async (element) => {
    try {
      await navigator.clipboard.writeText(element.textContent);
      return true;
    } catch { return copyByHand(element); }
  };
  for (const block of all("pre.command")) {
    const box = document.createElement("div");
    const button = document.createElement("button");
    box.className = "copyable";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${block.getAttribute("aria-label")}`);
    block.replaceWith(box);
    box.append(block, button);
    button.addEventListener("click", async () => {
      const done = await copy(block.firstElementChild);
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      spoken.textContent = done ? "Copied" : "Selected: press Ctrl+C to copy";
      setTimeout(() => { button.textContent = "Copy"; spoken.textContent = ""; }, 2000);
    });
  }
  document.querySelector("main").append(spoken);
})();
