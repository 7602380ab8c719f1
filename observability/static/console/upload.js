/* Upload: choose or drop files. Each file is one request with its progress; several files are one
   batch. Without this script the form sends all files in one request. */
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const form = find("#upload");
  if (!form) return;
  const input = find("#u-files");
  const drop = find("#drop");
  const list = find("#u-list tbody");
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const limit = form.dataset.limit * 1024 * 1024;
  let queue = [];
  let isRunning = false;

  input.required = false;
  find("#by-hand").hidden = true;
  find("#can-drop").hidden = false;

  const size = (bytes) => {
    if (!bytes) return "0 kB";
    return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  };
  const cell = (label, name = "td", className = "") => {
    const made = document.createElement(name);
    made.className = className;
    if (name === "td") made.dataset.label = label;
    else made.scope = "row";
    return made;
  };
  const chip = (item, word) => {
    item.word = word;
    item.status.replaceChildren(find(`#chip-${word}`).content.cloneNode(true));
  };
  const say = (item, ...parts) => item.said.replaceChildren(...parts);
  const small = (text) => Object.assign(document.createElement("small"), { textContent: text });

  const fail = (item, message, code = "", canRetry = false) => {
    chip(item, "failed");
    say(item, message, " ", small(code));
    item.canRetry = canRetry;
  };
  const sum = () => {
    const of = (word) => queue.filter((item) => item.word === word).length;
    const failed = of("failed") ? `, ${of("failed")} failed` : "";
    find("#u-sum").textContent = queue.length ? `${of("done")} of ${queue.length} accepted${failed}.` : "";
    const onlyFailed = queue.some((item) => item.canRetry) && !of("waiting");
    find("#start").textContent = onlyFailed ? "Send the failed files again" : "Upload";
  };

  const add = (files) => {
    if (!queue.length) list.replaceChildren();
    for (const file of files) {
      const row = document.createElement("tr");
      row.dataset.row = "";
      const item = { file, status: cell("Status"), said: cell("Result") };
      const name = cell("", "th");
      name.textContent = file.name;
      const weight = cell("Size", "td", "num");
      weight.textContent = size(file.size);
      row.append(name, weight, item.status, item.said);
      list.append(row);
      queue.push(item);
      chip(item, "waiting");
      const tooLarge = `The file is larger than ${form.dataset.limit} MB. Split the file, or raise MAX_UPLOAD_MB.`;
      if (file.size > limit) fail(item, tooLarge, "INPUT_TOO_LARGE");
      else if (file.size === 0) fail(item, "The file is empty. Send the file again.", "INPUT_INVALID");
    }
    find("#u-list").hidden = false;
    sum();
  };

  const post = (url, body, onProgress) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-CSRFToken", token);
    if (onProgress) request.upload.addEventListener("progress", onProgress);
    request.addEventListener("loadend", () => {
      let answer = null;
      try { answer = JSON.parse(request.responseText); } catch { /* the answer is not JSON of the console */ }
      resolve({ status: request.status, answer, left: request.responseURL.includes("/login/") });
    });
    request.send(body);
  });

  const send = async (item, batch) => {
    const body = new FormData();
    for (const name of ["token", "patient", "priority"]) body.append(name, form.elements[name].value);
    if (form.elements.force.checked) body.append("force", "1");
    if (batch) body.append("batch", batch);
    body.append("files", item.file);
    const bar = Object.assign(document.createElement("progress"), { max: 100, value: 0 });
    bar.setAttribute("aria-label", `Upload of ${item.file.name}`);
    const words = small(" 0 %");
    item.canRetry = false;
    chip(item, "running");
    say(item, bar, words);
    const { status, answer, left } = await post(form.action, body, (event) => {
      if (!event.lengthComputable) return;
      bar.value = 100 * event.loaded / event.total;
      const isSending = event.loaded < event.total;
      words.textContent = isSending ? ` ${Math.round(bar.value)} %` : " sent; the file is being checked";
    });
    if (left) return fail(item, "Your session has ended. Log in and upload the file again.");
    const lost = `The file did not arrive (${status || "no connection"}). Send the file again.`;
    if (!answer) return fail(item, lost, "", true);
    if (!answer.record) return fail(item, `${answer.message[0].toUpperCase()}${answer.message.slice(1)}`, answer.code);
    chip(item, "done");
    const title = `record ${answer.record.slice(0, 8)}`;
    const link = Object.assign(document.createElement("a"), { href: answer.url, textContent: title });
    say(item, answer.repeated ? "Accepted earlier: " : "Accepted: ", link);
  };

  const run = async () => {
    const waiting = queue.filter((item) => item.word === "waiting" || item.canRetry);
    if (isRunning || !waiting.length) return;
    isRunning = true;
    for (const part of form.elements) part.disabled = true;
    let batch = null;
    if (waiting.length > 1) batch = (await post(form.dataset.batch, new FormData())).answer?.batch;
    for (const item of waiting) {
      await send(item, batch);
      sum();
    }
    if (batch) await post(`${form.dataset.batch}${batch}/close/`, new FormData());
    for (const part of form.elements) part.disabled = false;
    input.value = "";
    isRunning = false;
  };

  input.addEventListener("change", () => { add(input.files); input.value = ""; });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const isReady = queue.some((item) => item.word === "waiting" || item.canRetry);
    if (!isReady) find("#u-sum").textContent = "Choose a file first.";
    run();
  });

  // The browser would open a file that is dropped beside the field, and leave the page.
  const holds = (event) => event.dataTransfer?.types.includes("Files");
  for (const name of ["dragover", "drop"]) {
    document.addEventListener(name, (event) => { if (holds(event)) event.preventDefault(); });
  }
  drop.addEventListener("dragover", (event) => { if (holds(event) && !isRunning) drop.classList.add("is-over"); });
  drop.addEventListener("dragleave", (event) => {
    if (!drop.contains(event.relatedTarget)) drop.classList.remove("is-over");
  });
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("is-over");
    if (!isRunning) add([...event.dataTransfer.files].filter((file) => file.size || file.type));
  });
  window.addEventListener("beforeunload", (event) => { if (isRunning) event.preventDefault(); });
})();
