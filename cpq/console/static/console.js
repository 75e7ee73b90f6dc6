// Keyboard shortcuts. Every page works without this file.
(() => {
  // Times are written by the server in this zone; without this file in UTC, or as chosen on the page of time zones.
  if (!/(^|; )cpq_zone=/.test(document.cookie)) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone) document.cookie = `cpq_zone=${encodeURIComponent(zone)}; path=/console; max-age=31536000; samesite=lax`;
  }

  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

  const dialog = () => document.querySelector("#confirmation");

  const links = () => [...document.querySelectorAll("tr[data-open] td.main a")];

  const move = (by) => {
    const all = links();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)].focus();
  };

  const keys = {
    j: () => move(1),
    k: () => move(-1),
    "/": () => document.querySelector("input[type=search]")?.focus(),
    // No key decides: these open the confirmation, whose comment takes what is typed next.
    a: () => document.querySelector("[data-key=a]")?.click(),
    r: () => document.querySelector("[data-key=r]")?.click(),
    n: () => document.querySelector("[data-next]")?.click(),
    "?": () => document.querySelector("#keys")?.showModal(),
    u: () => document.querySelector("[data-back]")?.click(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || (document.querySelector("dialog[open]") && event.key !== "Escape")) return;
    if (event.key === "Escape" && isTyping(event.target)) return event.target.blur();
    if (isTyping(event.target) || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  // A click anywhere in a row opens it, as its link does.
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-open]");
    if (!row || event.target.closest("a, button, input") || getSelection().toString()) return;
    row.querySelector("td.main a").click();
  });

  // The confirmation comes as a dialog. What cannot be confirmed is shown as a page of its own.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id === "confirmation" && !dialog().open) dialog().showModal();
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.target?.id === "confirmation") location.assign(event.detail.elt.href);
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("dialog [data-close]")) return;
    event.preventDefault();
    dialog().close();
  });

  // The time that is left to undo. When it is over, the server shows the result.
  const left = document.querySelector("[data-countdown]");
  if (left) {
    const end = performance.now() + 1000 * Number(left.dataset.countdown);
    const tick = setInterval(() => {
      const seconds = Math.ceil((end - performance.now()) / 1000);
      if (seconds > 0) return void (left.textContent = `${seconds} second${seconds === 1 ? "" : "s"}`);
      clearInterval(tick);
      location.reload();
    }, 250);
  }

  // A live update keeps the focused row.
  let focused = null;
  document.addEventListener("htmx:beforeSwap", () => {
    const active = document.activeElement?.closest("#rows a");
    if (active) focused = active.getAttribute("href"); // Otherwise an earlier swap may have saved it already.
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (focused) links().find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    focused = null;
  });

  // One click, one decision: a second one would only be refused.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (event.target.dataset.sent) return event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));
})();
