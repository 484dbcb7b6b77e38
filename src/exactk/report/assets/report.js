"use strict";
// The page is complete without this. It adds filters, sorting, tooltips and the choice of theme,
// and reads nothing but the page itself.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const SPECIES = { m: "methods", d: "data sets" };

  // ---- Theme: as the system says, until somebody chooses.
  const themeButton = document.getElementById("theme");
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const remember = (value) => {
    try { localStorage.setItem("exactk-theme", value); } catch { /* storage is not allowed here */ }
  };
  const recall = () => {
    try { return localStorage.getItem("exactk-theme"); } catch { return null; }
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const nameTheme = () => {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", `${themeButton.textContent} theme`);
  };
  if (["light", "dark"].includes(recall())) root.dataset.theme = recall();
  nameTheme();
  systemDark.addEventListener("change", nameTheme);
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    nameTheme();
  });

  // ---- Filters. Rows, columns, lines and panels carry the number of their method (data-m) and
  // data set (data-d); one rule in the style sheet hides all that is unchecked.
  const sheet = document.styleSheets[0];
  const filters = all(".filter");
  const boxes = all("input[data-filter]");
  const nameOf = (box) => box.parentElement.textContent.trim();
  let rules = 0;

  const closeGaps = () => {
    for (const picture of all("svg[data-rows]")) {
      const [top, height] = picture.dataset.rows.split(" ").map(Number);
      let shown = 0;
      for (const row of all(".row", picture)) {
        if (getComputedStyle(row).display === "none") continue;
        row.setAttribute("transform", `translate(0 ${top + height * shown})`);
        shown += 1;
      }
      const width = picture.viewBox.baseVal.width;
      picture.setAttribute("viewBox", `0 0 ${width} ${top + height * shown + 6}`);
    }
  };

  const apply = () => {
    while (rules > 0) { sheet.deleteRule(sheet.cssRules.length - 1); rules -= 1; }
    const hidden = boxes.filter((box) => !box.checked);
    for (const box of hidden) {
      const rule = `main [data-${box.dataset.filter}="${Number(box.value)}"] { display: none !important; }`;
      sheet.insertRule(rule, sheet.cssRules.length);
      rules += 1;
    }
    const parts = [];
    for (const filter of filters) {
      const own = boxes.filter((box) => box.dataset.filter === filter.dataset.kind);
      const off = own.filter((box) => !box.checked).length;
      filter.querySelector(".tally").textContent = `${own.length - off} of ${own.length}`;
      if (off) parts.push(`${off} of ${own.length} ${SPECIES[filter.dataset.kind]}`);
    }
    const line = document.getElementById("filtered");
    if (line) {
      line.hidden = parts.length === 0;
      line.textContent = parts.length ? `Hidden by the filters: ${parts.join(", ")}.` : "";
    }
    closeGaps();
  };

  // ---- The address keeps the filters and the section, so that a view can be passed on.
  let section = "";
  const writeAddress = () => {
    const words = new URLSearchParams();
    if (section) words.append("at", section);
    for (const box of boxes) if (!box.checked) words.append(`hide-${box.dataset.filter}`, nameOf(box));
    const text = words.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };
  const readAddress = () => {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) { section = text; return; }
    const words = new URLSearchParams(text);
    for (const box of boxes) {
      box.checked = !words.getAll(`hide-${box.dataset.filter}`).includes(nameOf(box));
    }
    section = words.get("at") ?? "";
    apply();
    if (section) document.getElementById(section)?.scrollIntoView();
  };
  addEventListener("hashchange", readAddress);
  for (const link of all(".side nav a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      section = link.getAttribute("href").slice(1);
      document.getElementById(section)?.scrollIntoView();
      writeAddress();
    });
  }

  for (const filter of filters) {
    const own = all("label", filter);
    filter.addEventListener("change", () => { apply(); writeAddress(); });
    filter.querySelector("input[type=search]").addEventListener("input", (event) => {
      event.stopPropagation();
      const wanted = event.target.value.trim().toLowerCase();
      for (const one of own) one.hidden = !one.textContent.toLowerCase().includes(wanted);
    });
    for (const button of all("button[data-set]", filter)) {
      button.addEventListener("click", () => {
        // After a search, all and none are of what was found.
        for (const one of own) {
          if (!one.hidden) one.querySelector("input").checked = button.dataset.set === "all";
        }
        apply();
        writeAddress();
      });
    }
  }
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  if (matchMedia("(max-width: 60rem)").matches) for (const filter of filters) filter.open = false;

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

  // ---- Legends: pointing at a method lifts its lines; a click holds them.
  for (const item of all(".legend:not(.fixed) li")) {
    const figure = item.closest(".figure");
    item.tabIndex = 0;
    item.setAttribute("role", "button");
    item.setAttribute("aria-pressed", "false");
    const light = (method) => {
      figure.classList.toggle("dim", method !== null);
      for (const line of all(".series", figure)) line.classList.toggle("lit", line.dataset.m === method);
    };
    const held = () => figure.querySelector('.legend li[aria-pressed="true"]')?.dataset.m ?? null;
    const press = () => {
      const on = item.getAttribute("aria-pressed") !== "true";
      for (const other of all(".legend li", figure)) other.setAttribute("aria-pressed", "false");
      item.setAttribute("aria-pressed", String(on));
      light(held());
    };
    item.addEventListener("pointerenter", () => light(item.dataset.m));
    item.addEventListener("pointerleave", () => light(held()));
    item.addEventListener("click", press);
    item.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); }
    });
  }

  // ---- Tooltips: the nearest point within reach says its title at once, to a finger as well.
  const REACH = 22;
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const prepared = new WeakMap();
  const pointsOf = (picture) => {
    if (!prepared.has(picture)) {
      // The browser's own tooltip would stand beside ours.
      for (const title of all("title", picture)) {
        if (title.parentElement === picture) continue;
        title.parentElement.dataset.tip = title.textContent;
        title.remove();
      }
      picture.querySelector(":scope > title")?.remove();
      prepared.set(picture, all(".pt[data-tip]", picture));
    }
    return prepared.get(picture);
  };
  let shownAt = 0;
  const say = (text, x, y) => {
    tip.textContent = text;
    shownAt = scrollY;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y - box.height - 12 < 4 ? y + 18 : y - box.height - 12}px`;
  };
  const point = (picture, event) => {
    const marks = pointsOf(picture);
    const own = event.target.closest?.("[data-tip]");
    if (own && !own.classList.contains("pt")) return say(own.dataset.tip, event.clientX, event.clientY);
    let best = null;
    let least = REACH ** 2;
    const matrix = picture.getScreenCTM();
    for (const mark of marks) {
      const group = mark.closest("[data-m]");
      if (group && getComputedStyle(group).display === "none") continue;
      // Rows of bars are moved as a whole; their hollow points have the rectangle.
      const place = mark.closest(".row") ? null : mark.transform.baseVal.getItem(0).matrix;
      if (!place) continue;
      const x = matrix.a * place.e + matrix.e - event.clientX;
      const y = matrix.d * place.f + matrix.f - event.clientY;
      if (x * x + y * y < least) { least = x * x + y * y; best = mark; }
    }
    if (best) return say(best.dataset.tip, event.clientX, event.clientY);
    tip.hidden = !own;
    if (own) say(own.dataset.tip, event.clientX, event.clientY);
    return undefined;
  };
  for (const picture of all("main svg[role=img]")) {
    picture.addEventListener("pointermove", (event) => point(picture, event));
    picture.addEventListener("pointerdown", (event) => point(picture, event));
    // A finger leaves when it is lifted, which is when one begins to read.
    picture.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") tip.hidden = true;
    });
  }
  addEventListener("pointerdown", (event) => {
    if (!event.target.closest?.("main svg[role=img]")) tip.hidden = true;
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  addEventListener("scroll", () => { if (Math.abs(scrollY - shownAt) > 40) tip.hidden = true; });

  if (location.hash) readAddress(); else apply();
})();
