/* Keys, polling while the page is visible, and announcements for a screen reader. The only
   dependency is htmx; the pages work without this script. */
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  // Polling: htmx requests the page on "tick"; a hidden page sends no tick.
  const opened = Date.now();
  let asked = {};
  setInterval(() => {
    if (document.hidden || find("dialog[open]")) return;
    for (const live of all("[data-poll]")) {
      // A new page would close an open table and interrupt typing.
      if (live.querySelector("details[open], input:focus")) continue;
      if (Date.now() - (asked[live.id] ?? opened) < live.dataset.poll * 1000) continue;
      asked[live.id] = Date.now();
      htmx.trigger(live, "tick");
    }
  }, 500);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) asked = Object.fromEntries(all("[data-poll]").map((live) => [live.id, 0]));
  });

  // A screen reader announces a changed sentence once, and never a changed figure.
  let said = find("[data-announce]")?.textContent;
  // A link that has the focus keeps the focus when the page is renewed.
  let held = "";
  document.addEventListener("htmx:beforeSwap", () => {
    held = document.activeElement?.closest("[data-poll] a")?.getAttribute("href") ?? "";
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const now = find("[data-announce]")?.textContent;
    if (now && now !== said) find("#announce").textContent = now;
    said = now ?? said;
    const link = held && find(`[data-poll] a[href="${CSS.escape(held)}"]`);
    if (link && document.activeElement === document.body) link.focus({ preventScroll: true });
    const isTick = event.detail.requestConfig?.triggeringEvent?.type === "tick";
    if (document.activeElement === document.body && !isTick) find("#here")?.focus({ preventScroll: true });
  });

  // After the end of a session, the answer is the log-in page, which must not be swapped in.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.responseURL && new URL(xhr.responseURL).pathname.endsWith("/login/")) {
      event.preventDefault();
      location.reload();
    }
  });
  const stale = () => find("[data-poll]")?.setAttribute("data-stale", "");
  document.addEventListener("htmx:sendError", stale);
  document.addEventListener("htmx:responseError", stale);

  // A page that cannot be renewed says why, in the words of the server's error page.
  document.addEventListener("htmx:responseError", (event) => {
    const answer = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    const cause = answer.querySelector("[role=alert]");
    const live = find("[data-poll]");
    if (!cause || !live || find("#refused")?.textContent === cause.textContent) return;
    find("#refused")?.remove();
    cause.id = "refused";
    const head = live.querySelector(".c-head");
    if (head) head.after(cause);
    else live.prepend(cause);
  });

  // The image of a page is requested once. The answer of the server holds a new address for the same image; the
  // console goes on with the address that the browser has loaded. "kept" holds the image in the browser's memory.
  const kept = new Map();
  const IMAGE = /(<image\s+id="([\w-]+)"\s+href=)"[^"]*"/g;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { serverResponse } = event.detail;
    event.detail.serverResponse = serverResponse?.replace(
      IMAGE, (whole, head, id) => kept.has(id) ? `${head}"${kept.get(id).getAttribute("src")}"` : whole,
    );
  });
  const keepImages = () => {
    const shown = new Map(all("image[id]").map((image) => [image.id, image]));
    for (const id of kept.keys()) if (!shown.has(id)) kept.delete(id);
    for (const [id, image] of shown) {
      if (kept.has(id)) continue;
      const copy = new Image();
      copy.src = image.getAttribute("href");
      kept.set(id, copy);
    }
  };
  document.addEventListener("htmx:afterSettle", keepImages);
  keepImages();
  // An image that could not be drawn is requested again.
  document.addEventListener("error", (event) => {
    if (event.target.matches?.("image[id]")) kept.delete(event.target.id);
  }, true);

  // The lines of a page can be wider than their frame: show the marked quote first.
  const showQuote = () => {
    for (const lines of all(".v-lines")) {
      const box = lines.querySelector(".r-box")?.getBoundingClientRect();
      if (!box) continue;
      const frame = lines.getBoundingClientRect();
      const spare = (inner, outer) => Math.max(16, (outer - inner) / 2);
      lines.scrollLeft += box.left - frame.left - spare(box.width, frame.width);
      lines.scrollTop += box.top - frame.top - spare(box.height, frame.height);
    }
  };
  document.addEventListener("htmx:afterSettle", showQuote);
  showQuote();
  // A click on a square of the map opens its page; keyboard users have the form beside the map.
  document.addEventListener("click", (event) => {
    const map = event.target.closest?.("[data-pages] path")?.closest("svg");
    if (!map) return;
    event.preventDefault();
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    location.assign(`${map.dataset.pages}?page=${Math.floor(at.y / 12) * 50 + Math.floor(at.x / 12) + 1}`);
  });

  // Keys: a second key after "g" goes to a page, after "r" and "m" it chooses of a list.
  const SECOND = { g: "go", r: "reason", m: "move" };
  let before = "";
  const row = (step) => {
    const rows = all("[data-row]").filter((each) => each.querySelector("a"));
    if (!rows.length) return;
    const at = rows.findIndex((each) => each.contains(document.activeElement));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    next.querySelector("a").focus();
  };
  const help = () => find("#keys").showModal();
  const keys = {
    "/": () => find("#c-search")?.focus(),
    "?": help,
    j: () => row(1),
    k: () => row(-1),
    r: () => {
      const chosen = document.activeElement.closest("[data-retry]");
      if (chosen) location.assign(chosen.dataset.retry);
      else find("[data-key=r]")?.click();
    },
  };
  // The first key of a pair chose on a page that is gone.
  document.addEventListener("htmx:afterSwap", () => { before = ""; });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (find("dialog[open]")) return;
    const chosen = (name) => find(`[data-${name}="${CSS.escape(event.key)}"]:not([disabled])`);
    const second = SECOND[before];
    // After "g", no key means anything else; a reviewer who changes their mind after "r" goes on.
    const link = second && chosen(second) || before !== "g" && chosen("turn") || null;
    before = event.key;
    // A held key would decide about entities that the reviewer has not seen.
    if (event.repeat && link?.matches("button, summary")) return;
    if (link) {
      event.preventDefault();
      link.click();
      if (link.matches("summary")) link.dispatchEvent(new Event("opened", { bubbles: true }));
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
})();
