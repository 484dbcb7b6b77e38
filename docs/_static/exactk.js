// What is wider than its box scrolls, and can be reached by key. What fits is no stop on the way.
(() => {
  const names = { PRE: "Code", DIV: "Table" };
  const look = (box) => {
    const wide = box.scrollWidth > box.clientWidth + 1;
    const more = wide && box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    box.classList.toggle("more", more);
    if (wide === box.hasAttribute("tabindex")) return;
    if (wide) {
      box.tabIndex = 0;
      // Not a region: a page may have dozens, and they would crowd the list of landmarks.
      box.setAttribute("role", "group");
      const name = box.classList.contains("picture") ? "Picture" : names[box.tagName];
      box.setAttribute("aria-label", `${name}, scrolls sideways`);
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  };
  const begin = () => {
    const sizes = new ResizeObserver((seen) => seen.forEach((one) => look(one.target)));
    for (const box of document.querySelectorAll("article pre, .table-wrapper, .picture")) {
      sizes.observe(box);
      box.addEventListener("scroll", () => look(box), { passive: true });
      // A picture that has come late widens what is in its box, and not the box.
      for (const image of box.querySelectorAll("img")) image.addEventListener("load", () => look(box));
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
