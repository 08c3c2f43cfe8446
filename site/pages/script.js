// "Ask this server": requests small files one after another and draws how long each took.
"use strict";

const ASKED = 200;

for (const box of document.querySelectorAll("[data-ask]")) {
  box.hidden = false;
  box.querySelector("button").addEventListener("click", (event) => ask(box, event.currentTarget));
}

async function ask(box, button) {
  const output = box.querySelector("output");
  button.disabled = true;
  try {
    const times = [];
    for (let i = 0; i < ASKED; i++) {
      times.push(await time(`files/text/t${String((i * 7) % 750).padStart(4, "0")}.txt`));
      if (i % 20 === 0) output.textContent = `${i} of ${ASKED} …`;
    }
    show(box, output, times);
  } catch (error) {
    output.textContent = `That did not work: ${error.message}.`;
  } finally {
    button.disabled = false;
  }
}

// Milliseconds until the last byte, past the browser's cache.
async function time(url) {
  const begun = performance.now();
  const answer = await fetch(url, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${url} was answered with ${answer.status}`);
  await answer.arrayBuffer();
  return performance.now() - begun;
}

function show(box, output, times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  output.innerHTML = `<b>${times.length}</b> files; half within <b>${at(0.5).toFixed(1)} ms</b>, ` +
    `99 of 100 within <b>${at(0.99).toFixed(1)} ms</b>. On one machine, nearly all of it is the browser’s own time.`;
  const top = at(0.98) * 1.5;
  box.querySelector(".bars").replaceChildren(...times.map((ms) => {
    const bar = document.createElement("i");
    bar.style.height = `${Math.min(100, ms / top * 100)}%`;
    if (ms > at(0.98)) bar.className = "slow";
    return bar;
  }));
}
