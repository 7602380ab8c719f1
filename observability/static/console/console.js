/* Keys, polling while the page is looked at, and what a screen reader is told. No dependencies but
   htmx; the pages work without this file. */
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  // Polling: htmx asks when we say so, and we say nothing while nobody looks.
  let asked = Date.now();
  setInterval(() => {
    const live = find("[data-poll]");
    if (!live || document.hidden || find("dialog[open]")) return;
    if (Date.now() - asked < live.dataset.poll * 1000) return;
    asked = Date.now();
    htmx.trigger(live, "tick");
  }, 500);
  document.addEventListener("visibilitychange", () => { asked = document.hidden ? asked : 0; });

  // What changed in words is said once; a figure that moves is not.
  let said = find("[data-announce]")?.textContent;
  document.addEventListener("htmx:afterSettle", () => {
    const now = find("[data-announce]")?.textContent;
    if (now && now !== said) find("#announce").textContent = now;
    said = now ?? said;
    if (document.activeElement === document.body) find("#here")?.focus({ preventScroll: true });
  });

  // A session that has ended answers with the log-in page, which is no part of this one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.responseURL && new URL(xhr.responseURL).pathname.endsWith("/login/")) {
      event.preventDefault();
      location.reload();
    }
  });
  const stale = () => find("#live")?.setAttribute("data-stale", "");
  document.addEventListener("htmx:sendError", stale);
  document.addEventListener("htmx:responseError", stale);

  // Upload: one request for each file, so that each has its progress and its word.
  const form = find("#upload");
  const send = (file) => new Promise((done) => {
    const line = document.createElement("li");
    find("#received").append(line);
    if (file.size > form.dataset.max) {
      line.textContent = `✕ ${file.name}: the file is too large.`;
      done();
      return;
    }
    const progress = document.createElement("progress");
    line.append(`${file.name} `, progress);
    const body = new FormData(form);
    body.delete("file");
    body.append("file", file);
    const xhr = new XMLHttpRequest();
    xhr.open("POST", form.action);
    xhr.setRequestHeader("X-Part", "results");
    xhr.upload.onprogress = (event) => { progress.value = event.loaded / event.total; };
    xhr.onloadend = () => {
      if (xhr.status === 200 && xhr.responseURL === form.action) line.outerHTML = xhr.responseText;
      else line.textContent = `✕ ${file.name}: not received (${xhr.status || "no answer"}).`;
      done();
    };
    xhr.send(body);
  });
  const sendAll = async (files) => { for (const file of files) await send(file); };
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    const input = form.elements.file;
    sendAll([...input.files]);
    input.value = "";
  });
  form?.addEventListener("dragover", (event) => event.preventDefault());
  form?.addEventListener("drop", (event) => {
    event.preventDefault();
    sendAll([...event.dataTransfer.files]);
  });

  // Keys.
  let before = "";
  const row = (step) => {
    const rows = all("[data-row]");
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
    r: () => find("[data-key=r]")?.click(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (find("dialog[open]")) return;
    const link = before === "g" && find(`[data-go="${CSS.escape(event.key)}"]`);
    before = event.key;
    if (link) {
      event.preventDefault();
      link.click();
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
})();
